#!/bin/sh
# Has webhooks verified by a Standard Webhooks library that is not ours, also when deliveries fail and
# while the secret of an endpoint is replaced.
#
#   tests/webhooks.sh          over the embedded store
#   tests/webhooks.sh redis    over a redis-server that it starts
#
# Needs python3 with venv; the library itself is installed below target/. The binary is
# target/debug's unless THREADKEEP_BIN names another.
set -eu

store=${1:-memory}
api_key=an-api-secret-of-the-tests-that-is-long-enough

cd "$(dirname "$0")/.."
venv=$PWD/target/standardwebhooks
version=1.0.1
if ! "$venv/bin/pip" show standardwebhooks 2>/dev/null | grep -qF "Version: $version"; then
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet "standardwebhooks==$version"
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
    THREADKEEP_WEBHOOK_ALLOW_PRIVATE=true \
    THREADKEEP_SIGNING_KEYS=main:an-hmac-secret-of-the-tests-that-is-long-enough \
    THREADKEEP_API_KEYS="ops:$api_key" \
    "$bin" 2>"$dir/server.log" &
server=$!
until_it grep -q '"listening"' "$dir/server.log"
address=$(sed -n '/"listening"/s/.*"address":"\([^"]*\)".*/\1/p' "$dir/server.log" | head -n 1)

"$venv/bin/python" tests/webhooks.py "http://$address" "$api_key"

kill -0 "$server" || {
    echo "the server did not survive" >&2
    exit 1
}
