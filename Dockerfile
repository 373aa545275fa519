# threadkeep as an image: docker build -t threadkeep .
# It listens on 0.0.0.0:8080 and refuses to start without a signing key of at least 32 bytes
# (THREADKEEP_SIGNING_KEYS, or a file that THREADKEEP_SIGNING_KEYS_FILE names).
#
# For production, --build-arg BUILD=build-pgo: the program is built twice, and the second time optimized
# for what ran in the load test (scripts/build-pgo.sh).

ARG RUST_VERSION=1.95
ARG DEBIAN_RELEASE=bookworm
ARG BUILD=build

# The manifests, with empty packages.
FROM debian:${DEBIAN_RELEASE}-slim AS manifests
WORKDIR /src
COPY . .
# Examples and benchmarks are not here, so they are not mentioned.
RUN find . -type f ! -name Cargo.toml ! -name Cargo.lock -delete \
    && find . -name Cargo.toml -exec sed -i '/^\[\[/,/^$/d' {} + \
    && for package in . load crates/* tests/* tools/*; do \
        mkdir -p "$package/src" \
        && touch "$package/src/lib.rs" \
        && echo 'fn main() {}' > "$package/src/main.rs" || exit 1; \
    done

FROM rust:${RUST_VERSION}-slim-${DEBIAN_RELEASE} AS empty
# The allocator, jemalloc, is built with make.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends make \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /src
# The dependencies make layers of their own, built with empty packages: a change of the source does
# not build them again.
COPY --from=manifests /src ./

FROM empty AS build
RUN cargo build --profile dist --locked && rm -r src crates/*/src
COPY src src
COPY crates crates
# Cargo compares times of change, and those of the copies may be older than the empty packages'.
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

# The load test knows the service by HTTP alone; of the service's package only the name is here.
FROM empty AS build-load
RUN cargo build --profile dist --locked --package threadkeep-load && rm -r load/src
COPY load/src load/src
RUN find load/src -name '*.rs' -exec touch {} + \
    && cargo build --profile dist --locked --package threadkeep-load

# docker build --target load: the load test, for docker-compose.yml. The owner of the directory /reports gets its
# reports.
FROM debian:${DEBIAN_RELEASE}-slim AS load
# Its HTTP client does not start without certificates of authorities.
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
# busybox has the wget of the health check, ca-certificates verify a Redis behind TLS. Versions are
# those of the release on the day of the build, for their security updates.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends busybox ca-certificates \
    && rm -rf /var/lib/apt/lists/* \
    && groupadd --gid 10001 threadkeep \
    && useradd --uid 10001 --gid threadkeep --no-create-home --home-dir /nonexistent \
        --shell /usr/sbin/nologin threadkeep \
    # a volume that is mounted here for the first time gets this owner and mode
    && install --directory --owner=threadkeep --group=threadkeep --mode=0700 /keys
COPY --from=built /src/target/dist/threadkeep /usr/local/bin/
COPY deploy/make-keys.sh /usr/local/bin/threadkeep-make-keys
# by number, so that an orchestrator sees that it is not root
USER 10001:10001
# where there is no threadkeep.toml
WORKDIR /
ENV THREADKEEP_LISTEN=0.0.0.0:8080
EXPOSE 8080
# Whether the process is up, and not whether Redis answers: no restart would mend that.
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s --retries=3 \
    CMD ["busybox", "wget", "-q", "-O", "/dev/null", "http://127.0.0.1:8080/healthz"]
ENTRYPOINT ["threadkeep"]
CMD ["serve"]
