#!/bin/sh
# Builds whatever is missing, and starts the chat.
#
# Set THREADKEEP_BIN to use a program other than target/release/threadkeep or target/debug/threadkeep.
set -eu
cd "$(dirname "$0")"
root=$PWD/../..

if [ -z "${THREADKEEP_BIN:-}" ]; then
    THREADKEEP_BIN=$root/target/debug/threadkeep
    [ -x "$THREADKEEP_BIN" ] || THREADKEEP_BIN=$root/target/release/threadkeep
    [ -x "$THREADKEEP_BIN" ] || {
        echo 'Building threadkeep, which takes minutes ...'
        cargo build --release --manifest-path "$root/Cargo.toml"
    }
fi
[ -e "$root/clients/typescript/dist" ] || npm ci --prefix "$root/clients/typescript" --no-audit --no-fund --loglevel=error
[ -e node_modules ] || npm ci --ignore-scripts --no-audit --no-fund --loglevel=error

export THREADKEEP_BIN
exec node server.mjs
