#!/bin/sh
# Runs the shell blocks in README.md and docs/, each page from top to bottom. Usage: tests/documents.sh [memory|redis]
#
# Needs bash and python3. tests/python.sh runs the Python blocks.
set -eu

cd "$(dirname "$0")/.."
# shellcheck source=tests/server.sh
. tests/server.sh

start_server "${1:-redis}"
# shellcheck disable=SC2154 # set by start_server
python3 tests/documents.py "http://$address" "$api_key"

# The server must accept the sample settings file together with generated keys.
for kind in signing api; do
    "$program" keygen --name first >"$dir/$kind"
done
env -i THREADKEEP_SIGNING_KEYS_FILE="$dir/signing" THREADKEEP_API_KEYS_FILE="$dir/api" \
    "$program" config --config deploy/threadkeep.toml >"$dir/settings"
grep -q 'redis://127.0.0.1:6379/0' "$dir/settings"
check_server
