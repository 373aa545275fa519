#!/bin/sh
# Tests the balancer of scripts/cluster-local.sh, which runs the services of docker-compose.yml without containers.
# Needs the same programs as cluster-local.sh. Set THREADKEEP_BIN to test a program other than target/debug/threadkeep.
set -eu

cd "$(dirname "$0")/.."
# shellcheck source=tests/cluster.sh
. tests/cluster.sh

cluster_up
current=$base/v1/threads/current

# Starting a running cluster again must not create keys or start processes.
cp -r "$cluster/keys" "$cluster/run" "$dir"
cluster_up
diff -r "$dir/keys" "$cluster/keys" || fail "the keys were created again"
diff -r "$dir/run" "$cluster/run" || fail "a process was started again"
[ "$(stat -c %a "$cluster/keys/signing" "$cluster/keys/api" | sort -u)" = 600 ] ||
    fail "others can read the keys"

signed=$(request --output /dev/null --cookie-jar "$dir/jar" --write-out '%header{x-thread-id}' \
    --json '{"n":0}' "$current/state/messages/push")
pushed=1
push() {
    request --fail --output /dev/null --header "x-thread-id: $signed" \
        --json "{\"n\":$pushed}" "$current/state/messages/push"
    pushed=$((pushed + 1))
}
for number in 2 3 4; do
    until request "http://127.0.0.$number:$replica_port/metrics" | grep push >/dev/null; do
        push
        [ "$pushed" -lt 500 ] || fail "replica $number gets no requests"
    done
done
until [ "$pushed" -ge 9 ]; do
    push
done
check_total() {
    total=$(request --output /dev/null --cookie "$dir/jar" --write-out '%header{x-total-count}' \
        "$current/state/messages?tail=1")
    [ "$total" = "$pushed" ] || fail "$pushed messages were pushed, $total are stored"
}
check_total

key=$(cut -d: -f2 "$cluster/keys/api")
answers 200 --header "authorization: Bearer $key" "$base/v1/threads/${signed%%;*}" ||
    fail "the API key was rejected"

# Only the balancer may report https to the server.
is_secure() {
    request --output /dev/null --dump-header - "$@" | grep -i '^set-cookie:.*; *secure' >/dev/null
}
is_secure --header 'x-forwarded-proto: https' "$current" || fail "https was not forwarded"
! is_secure "$current" || fail "http was treated as https"
! is_secure --interface 127.0.0.9 --header 'x-forwarded-proto: https' \
    "http://127.0.0.2:$replica_port/v1/threads/current" || fail "a client that is not the balancer could report https"

# Metrics are not public, even when the path is percent-encoded.
for path in metrics '%6detrics' '%6Detric%73'; do
    answers 200 "http://127.0.0.2:$replica_port/$path" || fail "the replicas have no /$path"
    answers 404 "$base/$path" || fail "/$path is public"
done

send TERM replica1
for n in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    answers 200 --header "x-thread-id: $signed" "$current/state" ||
        fail "request $n failed as a replica stopped"
done
await_end replica1
! scripts/cluster-local.sh status --dir "$cluster" >/dev/null || fail "status does not report the stopped replica"

send KILL replica2
await_end replica2
cluster_up
scripts/cluster-local.sh status --dir "$cluster" >/dev/null || fail "not all services run"

# Without Redis, a replica answers 503. Without replicas, the balancer answers 503.
is_written() {
    redis-cli -s "$cluster/redis.sock" info persistence | tr -d '\r' | grep -qx 'aof_buffer_length:0'
}
# with appendfsync everysec, Redis may not write a change to disk until two seconds after its reply
until_it is_written
send KILL redis
await_end redis
until_it grep -q 'backend.*ready.*has no server available' "$cluster/log/balancer.log"
request --header "x-thread-id: $signed" "$current/state" | grep '"request_id"' >/dev/null ||
    fail "no replica answered that Redis is down"
for replica in replica1 replica2 replica3; do
    send TERM "$replica"
    await_end "$replica"
done
until_it answers 503 "$base/healthz"
request --dump-header - "$base/healthz" | tr -d '\r' >"$dir/answer"
for line in '^content-type: application/problem+json$' '^retry-after: ' '"code":"store_unavailable"'; do
    grep -qi "$line" "$dir/answer" || fail "the balancer's own 503 lacks $line"
done

# Acknowledged writes survive the restart.
cluster_up
check_total

echo "balancer: three replicas behind HAProxy answer as in docker-compose.yml"
