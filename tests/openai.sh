#!/bin/sh
# Stores conversations with the unmodified packages openai (Python and TypeScript) and openai-agents. Tests all routes,
# paging, errors, broken connections, concurrent processes, model responses and agents. Runs the published tests of
# openai-agents. Prints the number of checks in each suite.
#
#   tests/openai.sh [redis]  with two replicas, on a private redis-server
#   tests/openai.sh memory   with the embedded store
#   tests/openai.sh STORE long   both versions of openai, each with the synchronous and the asynchronous client
#
# Needs python3 with venv, Node.js 20 or later, and npm. tests/packages.sh installs the packages.
set -eu

cd "$(dirname "$0")/.."
# shellcheck source=tests/server.sh
. tests/server.sh

store=${1:-redis} is_long=${2:-}
agents=0.24.0
[ -n "${THREADKEEP_BIN:-}" ] || cargo build --quiet --locked --package threadkeep-scripted-upstream
# The model's replies, in the order of the requests. $count is two replies: a call of the counter tool, and the text
# after the tool's result.
count='{"calls": [{"name": "kv_increment", "arguments": "{\"key\":\"a/n\"}"}]}, {"text": "counted"}'
hello='{"text": "hello"}'
weather='{"calls": [{"name": "weather", "arguments": "{\"city\":\"Oslo\"}"}]}'
tea='{"text": "Likes tea."}'
silent='{"text": "hello", "delay_ms": 7000}'
client="$count, $count, $count, $hello, $weather, $hello, $silent"
documents="$hello, $hello, $hello, $hello, $hello, $weather, $hello, $hello, $hello"
echo "[$client, $hello, $client, $hello, $hello, $hello, $hello, $documents, $count, $count, $count, $tea, $hello, $tea, $tea, $hello]" >"$dir/script.json"
target/debug/scripted-upstream "$dir/script.json" >"$dir/upstream.txt" &
servers="$servers $!"
until_it grep -q '^http' "$dir/upstream.txt"
upstream=$(head -n 1 "$dir/upstream.txt")
start_server "$store" THREADKEEP_MODELS="scripted main, gpt-4.1 main" THREADKEEP_UPSTREAMS="main openai-chat $upstream" \
    THREADKEEP_UPSTREAM_KEYS="main:$(tail -n 1 "$dir/upstream.txt")"
if [ "$store" = redis ]; then
    start_replica
else
    replica_address=$address
fi
main=$server
# a server whose Redis is stopped after the start
redis-server --port 0 --unixsocket "$dir/away.sock" --save '' --dir "$dir" >"$dir/away-redis.log" 2>&1 &
away=$!
servers="$servers $away"
until_it redis-cli -s "$dir/away.sock" ping
run_server away THREADKEEP_REDIS_URL="unix://$dir/away.sock" THREADKEEP_STORE_TIMEOUT_MS=2000
away_address=$listening
kill "$away"
run_server limited THREADKEEP_RATE_THREAD_WRITES=2/1h
limited_address=$listening
export OPENAI_API_KEY="$api_key"

# drive KIND PART ARGUMENT...: runs one part of the checks with the client KIND (sync or async).
drive() {
    "$venv/bin/python" tests/openai/client.py "$@"
}

# check_client KIND
check_client() {
    drive "$1" all "$address" "$away_address" "$limited_address"
    conversation=$(drive "$1" create "$address")
    # run two processes in parallel, each with its own replica if the store is Redis
    drive "$1" add "$address" "$conversation" even &
    even=$!
    drive "$1" add "$replica_address" "$conversation" odd &
    odd=$!
    wait "$even"
    wait "$odd"
    drive "$1" added "$replica_address" "$conversation"
}

# check_version VERSION SYNC|ASYNC...
check_version() {
    install_python "openai==$1" "openai-agents==$agents" httpx==0.28.1 pytest==9.2.0 pytest-asyncio==1.5.0
    shift
    clients=
    for kind; do
        check_client "$kind" &
        clients="$clients $!"
    done
    servers="$servers $clients"
    if [ $# = 2 ]; then
        "$venv/bin/python" tests/openai/agents_session.py "$address"
        "$venv/bin/python" tests/openai/responses.py "$address"
    fi
    for client in $clients; do
        wait "$client"
    done
}

# the version that the documentation names, and the newest version
if [ -n "$is_long" ]; then
    check_version 3.54.0 sync async
else
    check_version 3.54.0 sync
fi
check_version 3.57.0 sync async

# fill_tests: downloads the tests of openai-agents, which only the source distribution contains.
fill_tests() {
    "$venv/bin/pip" download --quiet --no-deps --no-binary openai-agents --dest "$entry" "openai-agents==$agents"
    tar -xzf "$entry"/*.tar.gz -C "$entry" --strip-components 1 --wildcards '*/tests' '*/pyproject.toml'
}

cached "openai-agents-$agents-tests" fill_tests
# Skips the tests for lost acknowledgements, because they expect calls without a status, but the server adds a status.
(
    cd "$entry"
    tests=$OLDPWD/tests/openai
    THREADKEEP_URL="http://$address/v1" PYTHONPATH="$tests" "$venv/bin/python" -m pytest -q -s \
        -p published -p no:cacheprovider tests/memory/test_openai_conversations_session.py \
        -k 'not lost-ack'
)

faults=$(curl -s "${upstream%/v1}/faults")
[ "$faults" = '[]' ] || {
    echo "the scripted upstream found faults: $faults" >&2
    exit 1
}

install_npm openai 7.57.0 @openai/agents-openai@0.20.0 zod@4.6.7
node tests/openai/typescript.mjs "$address" "$npm"
server=$main
check_server
