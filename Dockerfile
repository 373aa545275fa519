# Builds the image of threadkeep: docker build -t threadkeep .
#
# The server listens on 0.0.0.0:8080. It does not start without a signing key of at least 32 bytes (THREADKEEP_SIGNING_KEYS,
# or the file that THREADKEEP_SIGNING_KEYS_FILE names).
#
# For production, pass --build-arg BUILD=build-pgo: scripts/build-pgo.sh builds twice, with profile-guided optimization.

ARG RUST_VERSION=1.95
ARG DEBIAN_RELEASE=bookworm
ARG BUILD=build

FROM debian:${DEBIAN_RELEASE}-slim AS manifests
WORKDIR /src
COPY . .
# The image has neither examples nor benchmarks, so their manifests are removed.
RUN find . -type f ! -name Cargo.toml ! -name Cargo.lock -delete \
    && find . -name Cargo.toml -exec sed -i '/^\[\[/,/^$/d' {} + \
    && for package in . load crates/* tests/* tools/*; do \
        mkdir -p "$package/src" \
        && touch "$package/src/lib.rs" \
        && echo 'fn main() {}' > "$package/src/main.rs" || exit 1; \
    done

FROM rust:${RUST_VERSION}-slim-${DEBIAN_RELEASE} AS empty
# jemalloc needs make.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends make \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /src
# Dependencies have their own layers, built with empty packages, so a source change does not rebuild them.
COPY --from=manifests /src ./

FROM empty AS build
RUN cargo build --profile dist --locked && rm -r src crates/*/src
COPY src src
COPY crates crates
# Cargo compares modification times, and copied sources may be older than the empty packages.
RUN find src crates -name '*.rs' -exec touch {} + && cargo build --profile dist --locked --bin threadkeep

FROM empty AS build-pgo
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends llvm-19 redis-server \
    && rm -rf /var/lib/apt/lists/*
RUN rm -r src crates/*/src
COPY src src
COPY crates crates
COPY load/src load/src
COPY scripts/build-pgo.sh scripts/
RUN scripts/build-pgo.sh \
    && install -D target/pgo/threadkeep target/dist/threadkeep \
    && rm -r target/pgo

# hadolint ignore=DL3006
FROM ${BUILD} AS built

# The load test uses the service over HTTP only. Of the service's package, it needs only the name.
FROM empty AS build-load
RUN cargo build --profile dist --locked --package threadkeep-load && rm -r load/src
COPY load/src load/src
RUN find load/src -name '*.rs' -exec touch {} + \
    && cargo build --profile dist --locked --package threadkeep-load

# The load test, for docker-compose.yml: docker build --target load. Reports belong to the owner of /reports.
FROM debian:${DEBIAN_RELEASE}-slim AS load
# The HTTP client does not start without CA certificates.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates \
    && rm -rf /var/lib/apt/lists/*
COPY --from=build-load /src/target/dist/threadkeep-load /usr/local/bin/
COPY deploy/run-load.sh /usr/local/bin/threadkeep-run-load
WORKDIR /
ENV LOAD_REPORT=/reports
ENTRYPOINT ["threadkeep-run-load"]

FROM debian:${DEBIAN_RELEASE}-slim AS threadkeep
# busybox has wget for the health check, and ca-certificates verifies a Redis behind TLS. Versions are not pinned, so that
# each build has the current security updates.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends busybox ca-certificates \
    && rm -rf /var/lib/apt/lists/* \
    && groupadd --gid 10001 threadkeep \
    && useradd --uid 10001 --gid threadkeep --no-create-home --home-dir /nonexistent \
        --shell /usr/sbin/nologin threadkeep \
    # a new volume that is mounted here gets this owner and mode
    && install --directory --owner=threadkeep --group=threadkeep --mode=0700 /keys
COPY --from=built /src/target/dist/threadkeep /usr/local/bin/
COPY deploy/make-keys.sh /usr/local/bin/threadkeep-make-keys
# a numeric id lets orchestrators verify that the user is not root
USER 10001:10001
# a directory without threadkeep.toml
WORKDIR /
ENV THREADKEEP_LISTEN=0.0.0.0:8080
EXPOSE 8080
# Checks the process and not Redis: a restart would not bring Redis back.
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s --retries=3 \
    CMD ["busybox", "wget", "-q", "-O", "/dev/null", "http://127.0.0.1:8080/healthz"]
ENTRYPOINT ["threadkeep"]
CMD ["serve"]
