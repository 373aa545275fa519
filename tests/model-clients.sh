#!/bin/sh
# Has unmodified clients of OpenAI's Responses API use models that think and call tools, over all three kinds of upstreams,
# and compares what they can do with the table in docs/clients.md.
#
#   tests/model-clients.sh [redis|memory]
#
# Needs python3 with venv; tests/packages.sh installs the packages.
set -eu

cd "$(dirname "$0")/.."
# shellcheck source=tests/server.sh
. tests/server.sh

install_python openai==3.57.0 langchain-openai==1.7.4 'pydantic-ai-slim[openai]==2.68.0' agent-framework-openai==1.17.0
[ -n "${THREADKEEP_BIN:-}" ] || cargo build --quiet --locked --package threadkeep-scripted-upstream
target/debug/scripted-upstream >"$dir/upstream.txt" &
servers="$servers $!"
until_it grep -q '^http' "$dir/upstream.txt"
upstream=$(head -n 1 "$dir/upstream.txt")
key=$(tail -n 1 "$dir/upstream.txt")
start_server "${1:-redis}" THREADKEEP_MODELS="chat c, responses r, messages m" \
    THREADKEEP_UPSTREAMS="c openai-chat $upstream, r openai-responses $upstream, m anthropic ${upstream%/v1}" \
    THREADKEEP_UPSTREAM_KEYS="c:$key,r:$key,m:$key"

# shellcheck disable=SC2154 # set by start_server
"$venv/bin/python" tests/openai/clients.py "http://$address" "$api_key" docs/clients.md
check_server
