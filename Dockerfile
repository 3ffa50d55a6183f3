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

# The API stays on loopback until the one who starts the container says otherwise; the plain health
# and metrics ports are for the host's probes.
ENV DOCMEM_MODEL=/model \
    DOCMEM_DATA=/var/lib/docmem \
    DOCMEM_HEALTH_LISTEN=0.0.0.0:7601 \
    DOCMEM_METRICS_LISTEN=0.0.0.0:7602
USER docmem
VOLUME /var/lib/docmem
EXPOSE 7600 7601 7602
STOPSIGNAL SIGTERM
ENTRYPOINT ["docmemd"]
