# Starts a private cluster with scripts/cluster-local.sh. Other scripts source this file from the project's root
# directory, after `set -eu`. Sets the EXIT trap of the script. Set THREADKEEP_BIN to replace target/debug/threadkeep.
#
# shellcheck shell=sh

[ -n "${THREADKEEP_BIN:-}" ] || cargo build --quiet --locked
export THREADKEEP_BIN="${THREADKEEP_BIN:-target/debug/threadkeep}"
dir=$(mktemp -d)
cluster=$dir/cluster
# process ids of the background processes that the sourcing script starts
pids=

# shellcheck disable=SC2317 # called by the trap
finish() {
    status=$?
    for pid in $pids; do
        kill "$pid" 2>/dev/null || true
        wait "$pid" 2>/dev/null || true
    done
    [ "$status" = 0 ] || tail -n 20 "$dir"/*.log "$cluster"/log/*.log >&2 2>/dev/null || true
    scripts/cluster-local.sh down --dir "$cluster"
    rm -rf "$dir"
    exit "$status"
}
trap finish EXIT
trap 'exit 130' INT TERM

fail() {
    echo "$0: $*" >&2
    exit 1
}

# Waits up to two minutes until a command succeeds.
until_it() {
    tries=0
    until "$@" >/dev/null 2>&1; do
        tries=$((tries + 1))
        [ "$tries" -le 1200 ] || fail "gave up: $*"
        sleep 0.1
    done
}

# On a busy machine, the balancer must not count a slow replica as down, and a replica must not count a slow Redis
# server as unavailable.
mkdir "$cluster"
echo 'store_timeout_ms = 30000' >"$cluster/threadkeep.toml"
sed 's/^    timeout connect .*/&\n    timeout check 30s/' deploy/haproxy.cfg >"$cluster/haproxy.cfg"

# cluster_up: starts stopped services. Sets $base (the balancer's URL) and $replica_port.
cluster_up() {
    scripts/cluster-local.sh up --dir "$cluster" --port "${base##*:}" >/dev/null
    # shellcheck disable=SC2034 # for the script that sources this file
    read -r replica_port _ port <"$cluster/ports"
    base=http://127.0.0.1:$port
}
base=:0

# send SIGNAL NAME: signals a process of the cluster.
send() {
    kill -s "$1" "$(cut -d ' ' -f 1 "$cluster/run/$2")"
}

# await_end NAME: waits until the process has ended. A zombie process (state Z) counts as ended.
await_end() {
    until_it sh -c "! grep -q ') [^ZX]' /proc/$(cut -d ' ' -f 1 "$cluster/run/$1")/stat"
}

request() {
    curl --silent --show-error --max-time 60 "$@"
}

# answers STATUS CURL_ARGUMENT...: succeeds if the response has STATUS.
answers() {
    expected=$1
    shift
    [ "$(request --output /dev/null --write-out '%{http_code}' "$@")" = "$expected" ]
}
