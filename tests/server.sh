# Starts private servers, and installs packages for tests. Other test scripts source this file from the project's root
# directory, after `set -eu`. This file sets the EXIT trap. Set THREADKEEP_BIN to test a program other than
# target/debug/threadkeep.
#
# shellcheck shell=sh

# shellcheck source=tests/packages.sh
. tests/packages.sh

program=${THREADKEEP_BIN:-target/debug/threadkeep}
api_key=an-api-secret-of-the-tests-that-is-long-enough
dir=$(mktemp -d)
servers=
redis=

# shellcheck disable=SC2317 # called by the trap
finish() {
    status=$?
    for pid in $servers $redis; do
        kill "$pid" 2>/dev/null || true
        wait "$pid" 2>/dev/null || true
    done
    rm -rf "$dir"
    exit "$status"
}
trap finish EXIT
trap 'exit 130' INT TERM

# Waits up to two minutes until a command succeeds.
until_it() {
    tries=0
    until "$@" >/dev/null 2>&1; do
        tries=$((tries + 1))
        if [ "$tries" -gt 1200 ]; then
            echo "gave up: $*" >&2
            cat "$dir"/*.log >&2
            exit 1
        fi
        sleep 0.1
    done
}

# run_server NAME [SETTING=VALUE...]: starts a server in the background, and waits until it is listening. Sets $pid and
# $listening. The server logs to $dir/NAME.log.
run_server() {
    log=$dir/$1.log
    shift
    # long, because a busy machine may delay the store
    env -i THREADKEEP_STORE_TIMEOUT_MS=30000 "$@" \
        THREADKEEP_LISTEN=127.0.0.1:0 \
        THREADKEEP_WORKERS=2 \
        THREADKEEP_SIGNING_KEYS=main:an-hmac-secret-of-the-tests-that-is-long-enough \
        THREADKEEP_API_KEYS="ops:$api_key" \
        "$program" 2>"$log" &
    pid=$!
    servers="$servers $pid"
    until_it grep -q '"listening"' "$log"
    listening=$(sed -n '/"listening"/s/.*"address":"\([^"]*\)".*/\1/p' "$log" | head -n 1)
}

# start_redis: starts a redis-server without persistence on $dir/redis.sock.
start_redis() {
    redis-server --port 0 --unixsocket "$dir/redis.sock" --save '' --dir "$dir" \
        >"$dir/redis.log" 2>&1 &
    redis=$!
    until_it redis-cli -s "$dir/redis.sock" ping
}

# start_server memory|redis [SETTING=VALUE...]: starts a server on the given store. Sets $server and $address.
start_server() {
    store=$1
    shift
    case $store in
    memory) ;;
    redis)
        start_redis
        set -- "$@" THREADKEEP_REDIS_URL="unix://$dir/redis.sock"
        ;;
    *)
        echo "usage: $0 [memory|redis]" >&2
        exit 2
        ;;
    esac
    [ -n "${THREADKEEP_BIN:-}" ] || cargo build --quiet --locked --workspace
    run_server server "$@"
    server=$pid
    # shellcheck disable=SC2034 # for the script that sources this file
    address=$listening
}

# start_replica: starts a second server on the same Redis. Sets $replica_address.
start_replica() {
    run_server replica THREADKEEP_REDIS_URL="unix://$dir/redis.sock"
    # shellcheck disable=SC2034 # for the script that sources this file
    replica_address=$listening
}

# check_server: fails unless the server is still running.
check_server() {
    kill -0 "$server" || {
        echo "the server is not running" >&2
        exit 1
    }
}
