#!/bin/sh
# Runs reasoning and tool-calling models through unmodified clients of OpenAI's Responses API, with each of the three
# upstream APIs. Compares the results with the table in docs/clients.md. Usage: tests/model-clients.sh [redis|memory]
#
# Needs python3 with venv, Node.js 20 or later, and npm. tests/packages.sh installs the packages.
set -eu

cd "$(dirname "$0")/.."
# shellcheck source=tests/server.sh
. tests/server.sh

[ -n "${THREADKEEP_BIN:-}" ] || cargo build --quiet --locked --package threadkeep-scripted-upstream
target/debug/scripted-upstream >"$dir/upstream.txt" &
servers="$servers $!"
until_it grep -q '^http' "$dir/upstream.txt"
upstream=$(head -n 1 "$dir/upstream.txt")
key=$(tail -n 1 "$dir/upstream.txt")
start_server "${1:-redis}" THREADKEEP_MODELS="chat c, responses r, messages m" \
    THREADKEEP_UPSTREAMS="c openai-chat $upstream, r openai-responses $upstream, m anthropic ${upstream%/v1}" \
    THREADKEEP_UPSTREAM_KEYS="c:$key,r:$key,m:$key"

# python_rows REQUIREMENT...: prints the table rows of these packages.
python_rows() {
    install_python "$@"
    # shellcheck disable=SC2154 # set by start_server
    "$venv/bin/python" -W ignore tests/openai/clients.py "http://$address" "$api_key" "$@"
}

{
    python_rows openai==3.57.0 openai-agents==0.24.0 langchain-openai==1.7.4 'pydantic-ai-slim[openai]==2.68.0' \
        agent-framework-openai==1.17.0 litellm==1.110.2
    # LlamaIndex and the extra of Strands need version 2 of openai.
    python_rows strands-agents==1.62.0 llama-index-llms-openai==0.8.3
    install_npm openai 7.59.0 @openai/agents@0.20.0 ai@7.0.173 @ai-sdk/openai@4.0.118 @ai-sdk/open-responses@2.0.36 zod@4.6.7
    node tests/openai/clients.mjs "http://$address" "$api_key" "$npm"
} >"$dir/rows"
grep '^| `' docs/clients.md | diff - "$dir/rows"

faults=$(curl -s "${upstream%/v1}/faults")
[ "$faults" = '[]' ] || {
    echo "the scripted upstream found faults: $faults" >&2
    exit 1
}
check_server
