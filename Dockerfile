# docker build -t docmem . && docker run --network host -v MODEL:/model:ro -v docmem:/var/lib/docmem docmem
FROM debian:bookworm-slim AS build
WORKDIR /src

COPY scripts/packages.txt scripts/requirements-build.txt scripts/
RUN apt-get update \
 && awk '/^[a-z]/ && NF == 1' scripts/packages.txt | xargs apt-get install -y --no-install-recommends \
 && rm -rf /var/lib/apt/lists/*
RUN python3 -m venv .venv \
 && .venv/bin/pip install --no-cache-dir --no-deps -r scripts/requirements-build.txt

COPY . .
RUN cmake --preset release -DBUILD_TESTING=OFF -DCMAKE_CXX_COMPILER_LAUNCHER= \
 && cmake --build --preset release \
 && cmake --install build/release --strip --component runtime --prefix /opt/docmem


FROM debian:bookworm-slim
RUN apt-get update \
 && apt-get install -y --no-install-recommends \
    libgrpc++1.51 libprometheus-cpp-pull1.0 libspdlog1.10 libsqlite3-0 libutf8proc2 libpcre2-8-0 \
    libxxhash0 libzstd1 \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --system --uid 10001 --home-dir /var/lib/docmem --create-home docmem
COPY --from=build /opt/docmem /usr/local
COPY deploy/docker/docmem.toml /etc/docmem/docmem.toml
ENV DOCMEM_CONFIG=/etc/docmem/docmem.toml
USER docmem
VOLUME /var/lib/docmem
EXPOSE 7600 7601 7602
STOPSIGNAL SIGTERM
ENTRYPOINT ["docmemd"]
