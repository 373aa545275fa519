#!/bin/sh
# Runs the tests of Open Responses' compliance suite with each of the three upstream APIs. The test client validates
# each object and event. Usage: tests/open-responses.sh [redis|memory]
#
# Needs Node.js 20 or later, and npm. tests/packages.sh installs the packages.
set -eu

cd "$(dirname "$0")/.."
# shellcheck source=tests/server.sh
. tests/server.sh

install_npm zod 4.6.7 ws@8.23.0
[ -n "${THREADKEEP_BIN:-}" ] || cargo build --quiet --locked --package threadkeep-scripted-upstream
target/debug/scripted-upstream >"$dir/upstream.txt" &
servers="$servers $!"
until_it grep -q '^http' "$dir/upstream.txt"
upstream=$(head -n 1 "$dir/upstream.txt")
key=$(tail -n 1 "$dir/upstream.txt")
start_server "${1:-redis}" THREADKEEP_MODELS="chat c, responses r, messages m" \
    THREADKEEP_UPSTREAMS="c openai-chat $upstream, r openai-responses $upstream, m anthropic ${upstream%/v1}" \
    THREADKEEP_UPSTREAM_KEYS="c:$key,r:$key,m:$key"

# shellcheck disable=SC2154 # set by start_server and install_npm
NODE_PATH=$npm/node_modules node tests/open_responses/main.mjs "http://$address" "$api_key" chat responses messages
faults=$(curl -s "${upstream%/v1}/faults")
[ "$faults" = '[]' ] || {
    echo "the scripted upstream found faults: $faults" >&2
    exit 1
}
check_server
