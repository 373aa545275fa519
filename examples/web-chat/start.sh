#!/bin/sh
# Builds missing parts and starts the chat. THREADKEEP_BIN replaces target/debug/threadkeep.
set -eu
cd "$(dirname "$0")"
root=$PWD/../..

[ -n "${THREADKEEP_BIN:-}" ] || cargo build --quiet --manifest-path "$root/Cargo.toml"
[ -e "$root/clients/typescript/dist" ] || npm ci --prefix "$root/clients/typescript" --no-audit --no-fund --loglevel=error
[ -e node_modules ] || npm ci --ignore-scripts --no-audit --no-fund --loglevel=error

export THREADKEEP_BIN="${THREADKEEP_BIN:-$root/target/debug/threadkeep}"
exec node server.mjs
