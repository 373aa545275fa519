#!/bin/sh
# Checks the licences and sources of dependencies against deny.toml, and looks for advisories where their database can be
# reached. Installs cargo-deny, which no package of Debian has, without optimizations: it has little to do.
set -eu

cd "$(dirname "$0")/.."
version=0.20.2
tools=${XDG_CACHE_HOME:-$HOME/.cache}/threadkeep/cargo-deny-$version
deny=$tools/bin/cargo-deny
[ -x "$deny" ] || CARGO_PROFILE_DEV_DEBUG=0 cargo install --quiet --locked --debug --root "$tools" \
    --target-dir target/cargo-deny "cargo-deny@$version"
# shipped code keeps to deny.toml; all built code comes from crates.io
"$deny" --locked --exclude-dev check licenses bans
"$deny" --locked --workspace check sources
if curl -sfL -o /dev/null --max-time 20 https://github.com/RustSec/advisory-db; then
    "$deny" --locked --workspace check advisories
else
    echo 'advisories: skipped, their database cannot be reached'
fi
