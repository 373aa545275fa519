#!/bin/sh
# Deletes the data of a Redis server and restores it from a backup, as described in docs/move-data.md.
set -eu

cd "$(dirname "$0")/.."
# shellcheck source=tests/server.sh
. tests/server.sh

fail() {
    echo "$0: $*" >&2
    exit 1
}

socket=$dir/redis.sock
start_redis() {
    mkdir -p "$dir/data"
    redis-server --port 0 --unixsocket "$socket" --dir "$dir/data" --appendonly yes --save "" --maxmemory-policy noeviction \
        >"$dir/redis.log" 2>&1 &
    redis=$!
    until_it redis-cli -s "$socket" ping
}

# request METHOD PATH [CURL OPTION...]
request() {
    method=$1
    path=$2
    shift 2
    curl --silent --fail-with-body --request "$method" --header "authorization: Bearer $api_key" \
        --header "content-type: application/json" "$@" "http://$listening/v1/$path"
}

start_redis
run_server first THREADKEEP_REDIS_URL="unix://$socket"
first=$pid
for number in $(seq 20); do
    request POST threads --data "{\"id\":\"thrd_$(printf %032d "$number")\",\"state\":{\"list\":[$number]},\"owner\":\"ann\"}" >/dev/null
done
request PUT kv/files/a --data '"an entry"' >/dev/null
request GET export >"$dir/before"

deploy/backup.sh "$dir/backup.rdb" -s "$socket"
[ "$(stat -c %a "$dir/backup.rdb")" = 600 ] || fail "others can read the backup"
if deploy/backup.sh "$dir/backup.rdb" -s "$socket" 2>/dev/null; then
    fail "a backup replaced another"
fi
request POST "threads/thrd_$(printf %032d 1)/state/list/push" --data '"after the backup"' >/dev/null

kill "$first"
wait "$first" || true
kill -9 "$redis"
wait "$redis" || true
if deploy/restore.sh "$dir/backup.rdb" "$dir/data" 2>/dev/null; then
    fail "a restore overwrote data"
fi
rm -r "$dir/data"
head -c 1000 "$dir/backup.rdb" >"$dir/broken.rdb"
if deploy/restore.sh "$dir/broken.rdb" "$dir/data" 2>/dev/null; then
    fail "a truncated backup was restored"
fi
deploy/restore.sh "$dir/backup.rdb" "$dir/data"

for restart in 1 2; do
    start_redis
    run_server "again-$restart" THREADKEEP_REDIS_URL="unix://$socket"
    request GET export >"$dir/after"
    # an export does not extend the lifetimes of threads, so the expiry times must also be equal
    cmp "$dir/before" "$dir/after" || fail "the threads differ"
    [ "$(request GET kv/files/a)" = '"an entry"' ] || fail "the entry is lost"
    kill "$pid" "$redis"
    wait "$pid" "$redis" || true
done
if redis-cli -s "$socket" ping 2>/dev/null; then
    fail "Redis still runs"
fi
deploy/backup.sh "$dir/none.rdb" -s "$socket" 2>/dev/null && fail "a backup of nothing succeeded"
[ ! -e "$dir/none.rdb" ] || fail "a failed backup left a file"
echo "backup: 20 threads and an entry are unchanged"
