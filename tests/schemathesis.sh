#!/bin/sh
# Runs schemathesis against a server of its own: what the service answers to thousands of odd
# requests has to be what openapi.json says, and never a server error.
#
#   tests/schemathesis.sh          over the embedded store
#   tests/schemathesis.sh redis    over a redis-server that it starts
#
# Needs python3 with venv; the tool itself is installed below target/. The binary is target/debug's
# unless THREADKEEP_BIN names another.
set -eu

store=${1:-memory}
examples=${EXAMPLES:-50}
checks=not_a_server_error,status_code_conformance,content_type_conformance
checks=$checks,response_schema_conformance,response_headers_conformance
checks=$checks,allow_header_conformance,unsupported_method,missing_required_header
checks=$checks,negative_data_rejection,ignored_auth
api_key=an-api-secret-of-the-tests-that-is-long-enough

cd "$(dirname "$0")/.."
venv=$PWD/target/schemathesis
version=4.32.5
if ! "$venv/bin/schemathesis" --version 2>/dev/null | grep -qF "$version"; then
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet "schemathesis==$version"
fi
bin=${THREADKEEP_BIN:-target/debug/threadkeep}
[ -n "${THREADKEEP_BIN:-}" ] || cargo build --quiet

dir=$(mktemp -d)
server=
redis=
# shellcheck disable=SC2317 # called by the trap
finish() {
    status=$?
    for pid in $server $redis; do
        kill "$pid" 2>/dev/null || true
        wait "$pid" 2>/dev/null || true
    done
    rm -rf "$dir"
    exit "$status"
}
trap finish EXIT
trap 'exit 130' INT TERM

# Waits up to 30 s until a command succeeds.
until_it() {
    tries=0
    until "$@" >/dev/null 2>&1; do
        tries=$((tries + 1))
        if [ "$tries" -gt 300 ]; then
            echo "gave up: $*" >&2
            cat "$dir"/*.log >&2
            exit 1
        fi
        sleep 0.1
    done
}

set --
case $store in
memory) ;;
redis)
    redis-server --port 0 --unixsocket "$dir/redis.sock" --save '' --dir "$dir" \
        >"$dir/redis.log" 2>&1 &
    redis=$!
    until_it redis-cli -s "$dir/redis.sock" ping
    set -- THREADKEEP_REDIS_URL="unix://$dir/redis.sock"
    ;;
*)
    echo "usage: $0 [memory|redis]" >&2
    exit 2
    ;;
esac

env -i "$@" \
    THREADKEEP_LISTEN=127.0.0.1:0 \
    THREADKEEP_WORKERS=2 \
    THREADKEEP_SIGNING_KEYS=main:an-hmac-secret-of-the-tests-that-is-long-enough \
    THREADKEEP_API_KEYS="ops:$api_key" \
    "$bin" 2>"$dir/server.log" &
server=$!
until_it grep -q '"listening"' "$dir/server.log"
address=$(sed -n '/"listening"/s/.*"address":"\([^"]*\)".*/\1/p' "$dir/server.log" | head -n 1)

# A stream of events does not end by itself, and a request of this tool ends with its answer. What a
# stream refuses, HEAD refuses too.
streams='^get_(thread_)?events(_by_id)?$'

# It keeps notes of its own where it is run.
cd "$dir"
"$venv/bin/schemathesis" --no-color run "http://$address/openapi.json" \
    --header "Authorization: Bearer $api_key" \
    --checks "$checks" \
    --exclude-operation-id-regex "$streams" \
    --phases examples,coverage,fuzzing \
    --max-examples "$examples" \
    --seed 1 \
    --generation-database none \
    --request-timeout 10 \
    --continue-on-failure \
    --suppress-health-check all

kill -0 "$server" || {
    echo "the server did not survive" >&2
    exit 1
}
