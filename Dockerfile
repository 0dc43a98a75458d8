# syntax=docker/dockerfile:1

FROM rust:1.95-slim-bookworm AS build
# The bundled SQLite is C.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends gcc libc6-dev \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /build
COPY . .
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/build/target \
    cargo build --locked --release --bin belfry \
    && cp target/release/belfry /usr/local/bin/belfry

FROM debian:bookworm-slim
# Roots for the mail server's and the providers' certificates.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --system --uid 10001 --user-group --no-create-home --shell /usr/sbin/nologin belfry \
    && install -d -o belfry -g belfry -m 0700 /var/lib/belfry
COPY --from=build /usr/local/bin/belfry /usr/local/bin/belfry

# All that is ever written is the store, so the root can be read-only:
#   docker run --read-only -v belfry:/var/lib/belfry -e BELFRY_BOOTSTRAP_KEY -p 8090:8090 belfry
ENV BELFRY__HTTP__LISTEN=0.0.0.0:8090 \
    BELFRY__STORE__SQLITE__PATH=/var/lib/belfry/belfry.db
USER 10001:10001
WORKDIR /var/lib/belfry
VOLUME /var/lib/belfry
EXPOSE 8090
# SIGTERM drains: open calls get 25 s (`shutdown_grace`), so the stop must wait longer.
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s --retries=3 CMD ["belfry", "health"]
ENTRYPOINT ["belfry"]
CMD ["serve"]
