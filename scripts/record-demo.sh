#!/bin/sh
# Records `threadkeep demo` as docs/demo.gif, which must not exceed 2 MB. Usage: scripts/record-demo.sh [PROGRAM]
#
# PROGRAM defaults to target/release/threadkeep. Needs node, npm, python3 with venv, and chromium. Set CHROMIUM to use a
# different browser.
set -eu
cd "$(dirname "$0")/.."

program=${1:-target/release/threadkeep}
max_bytes=2000000
frames=$(mktemp -d)
trap 'rm -rf "$frames"' EXIT
# shellcheck source=tests/packages.sh
. tests/packages.sh

install_locked console
install_python pillow==12.0.0
NODE_PATH=$npm/node_modules node scripts/record_demo.mjs "$program" "$frames"
# shellcheck disable=SC2154 # install_python sets it
"$venv/bin/python" scripts/join_frames.py "$frames" docs/demo.gif
bytes=$(wc -c <docs/demo.gif)
echo "docs/demo.gif: $bytes bytes"
[ "$bytes" -le "$max_bytes" ]
