#!/bin/sh
# Checks the licences and sources of dependencies against deny.toml. Also checks security advisories if their database
# is reachable. Builds cargo-deny from source, because Debian does not package it, but skips optimizations to save time.
set -eu

cd "$(dirname "$0")/.."
version=0.20.2
tools=${XDG_CACHE_HOME:-$HOME/.cache}/threadkeep/cargo-deny-$version
deny=$tools/bin/cargo-deny
[ -x "$deny" ] || CARGO_PROFILE_DEV_DEBUG=0 cargo install --quiet --locked --debug --root "$tools" \
    --target-dir target/cargo-deny "cargo-deny@$version"
# check the licences of shipped code only, and the sources of all dependencies
"$deny" --locked --exclude-dev check licenses bans
"$deny" --locked --workspace check sources
if curl -sfL -o /dev/null --max-time 20 https://github.com/RustSec/advisory-db; then
    "$deny" --locked --workspace check advisories
else
    echo 'advisories: skipped, their database is unreachable'
fi
