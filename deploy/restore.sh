#!/bin/sh
# Creates a Redis data directory from a snapshot written by deploy/backup.sh.
#
#   deploy/restore.sh FILE DIRECTORY
#
# DIRECTORY must be empty. Start Redis in it with `appendonly yes`. The script writes the append-only file that Redis
# needs in that mode. Redis must not be older than the redis-server that this script runs.
set -eu
umask 077

[ $# = 2 ] || {
    sed -n 's/^#   //p' "$0" >&2
    exit 2
}
file=$1
dir=$2

fail() {
    echo "$0: $*" >&2
    exit 1
}

mkdir -p "$dir"
[ -z "$(ls -A "$dir")" ] || fail "$dir is not empty"
redis-check-rdb "$file" >/dev/null || fail "$file is no snapshot"
cp "$file" "$dir/dump.rdb"

run=$(mktemp -d)
socket=$run/redis.sock
redis-server --port 0 --unixsocket "$socket" --dir "$dir" --save "" --appendonly no >"$run/log" 2>&1 &
redis=$!
trap 'kill "$redis" 2>/dev/null || true; rm -rf "$run"' EXIT
trap 'exit 130' INT TERM

ask() {
    redis-cli -s "$socket" "$@"
}

wait_for_reply() {
    text=$1
    shift
    until ask "$@" 2>/dev/null | tr -d '\r' | grep -qx "$text"; do
        kill -0 "$redis" 2>/dev/null || {
            cat "$run/log" >&2
            fail "redis-server ended"
        }
        sleep 0.1
    done
}

wait_for_reply PONG ping
ask config set appendonly yes >/dev/null
wait_for_reply aof_rewrite_scheduled:0 info persistence
wait_for_reply aof_rewrite_in_progress:0 info persistence
ask info persistence | tr -d '\r' | grep -qx aof_last_bgrewrite_status:ok || fail "Redis could not write the append-only file"
keys=$(ask dbsize | tr -dc 0-9)
ask shutdown >/dev/null 2>&1 || true
wait "$redis" || true
rm -f "$dir/dump.rdb"
# if Redis runs as the owner of the directory, it cannot read files that belong to root
[ "$(id -u)" != 0 ] || chown -R --reference="$dir" "$dir"/*
echo "$dir has $keys keys"
