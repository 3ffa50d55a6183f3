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


FROM debian:bookworm-slim AS runtime
RUN apt-get update \
 && apt-get install -y --no-install-recommends \
    libgrpc++1.51 libprometheus-cpp-pull1.0 libspdlog1.10 libtomlplusplus3 libsqlite3-0 libpq5 \
    libcurl4 libpugixml1v5 ca-certificates \
    libutf8proc2 libpcre2-8-0 libxxhash0 libzstd1 libstemmer0d \
 && rm -rf /var/lib/apt/lists/* \
 && groupadd --gid 10001 docmem \
 && useradd --uid 10001 --gid 10001 --home-dir /var/lib/docmem --no-create-home docmem \
 && install -d -o docmem -g docmem /var/lib/docmem
COPY --from=build /opt/docmem /usr/local
# A library that the list above lacks fails the build, not the first start.
RUN ! ldd /usr/local/bin/docmemd /usr/local/bin/docmem | grep 'not found'


# The bill of materials: only here are both the whole image and a Python to read it with.
FROM build AS sbom
ARG SOURCE_DATE_EPOCH
RUN --mount=type=bind,from=runtime,target=/image \
    python3 scripts/make_sbom.py --root /image --build-root / --output /sbom.spdx.json \
      --version "$(/opt/docmem/bin/docmemd --version | cut -d' ' -f2)"


FROM runtime
COPY --from=sbom /sbom.spdx.json /usr/share/doc/docmem/sbom.spdx.json
COPY deploy/docker/docmem.toml /etc/docmem/docmem.toml
ENV DOCMEM_CONFIG=/etc/docmem/docmem.toml
USER 10001:10001
VOLUME /var/lib/docmem
EXPOSE 7600 7601 7602
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s \
  CMD ["docmem", "--address", "127.0.0.1:7601", "health"]
ENTRYPOINT ["docmemd"]
