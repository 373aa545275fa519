#!/bin/sh
# Plays docker-compose.yml without containers: keys by deploy/make-keys.sh, redis-server, three
# replicas that are found by DNS, and HAProxy with deploy/haproxy.cfg; then asks through it.
#
# Needs redis-server, haproxy, dnsmasq, curl (7.84 or later) and python3. The binary is
# target/debug's unless THREADKEEP_BIN names another.
set -eu

cd "$(dirname "$0")/.."
bin=${THREADKEEP_BIN:-target/debug/threadkeep}
[ -n "${THREADKEEP_BIN:-}" ] || cargo build --quiet --locked

dir=$(mktemp -d)
pids=
# shellcheck disable=SC2317 # called by the trap
finish() {
    status=$?
    for pid in $pids; do
        kill "$pid" 2>/dev/null || true
        wait "$pid" 2>/dev/null || true
    done
    [ "$status" = 0 ] || tail -n 20 "$dir"/*.log >&2
    rm -rf "$dir"
    exit "$status"
}
trap finish EXIT
trap 'exit 130' INT TERM

fail() {
    echo "balancer: $*" >&2
    exit 1
}

# Waits up to 30 s until a command succeeds.
until_it() {
    tries=0
    until "$@" >/dev/null 2>&1; do
        tries=$((tries + 1))
        [ "$tries" -le 300 ] || fail "gave up: $*"
        sleep 0.1
    done
}

# Prints three ports that are free for TCP and UDP on the addresses used here, from below those that
# Linux gives to outgoing connections.
free_ports() {
    python3 -c 'import random, socket
def is_free(port):
    try:
        for kind in socket.SOCK_STREAM, socket.SOCK_DGRAM:
            for place in 1, 2, 3, 4:
                with socket.socket(type=kind) as probe:
                    probe.bind((f"127.0.0.{place}", port))
    except OSError:
        return False
    return True
print(*[port for port in random.sample(range(20000, 32000), 100) if is_free(port)][:3])'
}

ask() {
    curl --silent --show-error --max-time 10 "$@"
}

# Whether the status of an answer is $1.
answers() {
    expected=$1
    shift
    [ "$(ask --output /dev/null --write-out '%{http_code}' "$@")" = "$expected" ]
}

mkdir "$dir/keys" "$dir/bin"
ln -s "$(realpath "$bin")" "$dir/bin/threadkeep"
PATH="$dir/bin:$PATH" deploy/make-keys.sh "$dir/keys" >/dev/null
cp -r "$dir/keys" "$dir/before"
PATH="$dir/bin:$PATH" deploy/make-keys.sh "$dir/keys" >/dev/null
diff -r "$dir/before" "$dir/keys" || fail "the keys were made again"
[ "$(stat -c %a "$dir/keys/signing" "$dir/keys/api" | sort -u)" = 600 ] || fail "others read the keys"

redis-server --port 0 --unixsocket "$dir/redis.sock" --dir "$dir" --appendonly yes --save '' \
    --maxmemory-policy noeviction >"$dir/redis.log" 2>&1 &
redis=$!
pids=$redis
until_it redis-cli -s "$dir/redis.sock" ping

# shellcheck disable=SC2046 # they are three words
set -- $(free_ports)
replica_port=$1 dns_port=$2 port=$3

replicas=
for place in 2 3 4; do
    env -i \
        THREADKEEP_LISTEN="127.0.0.$place:$replica_port" \
        THREADKEEP_REDIS_URL="unix://$dir/redis.sock" \
        THREADKEEP_SIGNING_KEYS_FILE="$dir/keys/signing" \
        THREADKEEP_API_KEYS_FILE="$dir/keys/api" \
        THREADKEEP_TRUSTED_PROXIES=127.0.0.1 \
        THREADKEEP_WORKERS=1 \
        "$dir/bin/threadkeep" 2>"$dir/replica$place.log" &
    replicas="$replicas $!"
    pids="$! $pids"
done

dnsmasq --keep-in-foreground --conf-file=/dev/null --no-resolv --no-hosts --pid-file= --user= \
    --listen-address=127.0.0.1 --bind-interfaces --port="$dns_port" --log-facility=- \
    --host-record=threadkeep,127.0.0.2 --host-record=threadkeep,127.0.0.3 \
    --host-record=threadkeep,127.0.0.4 2>"$dir/dns.log" &
pids="$! $pids"

LISTEN="127.0.0.1:$port" DNS="127.0.0.1:$dns_port" REPLICAS="threadkeep:$replica_port" \
    haproxy -db -f deploy/haproxy.cfg >"$dir/balancer.log" 2>&1 &
pids="$! $pids"
base=http://127.0.0.1:$port
current=$base/v1/threads/current

for place in 2 3 4; do
    until_it answers 200 "http://127.0.0.$place:$replica_port/readyz"
    until_it grep -q "Server ready/.*replica$((place - 1))\>.*UP" "$dir/balancer.log"
done
until_it answers 200 "$base/readyz"

# A conversation goes on over all replicas, by header and by cookie.
signed=$(ask --output /dev/null --cookie-jar "$dir/jar" --write-out '%header{x-thread-id}' \
    --json '{"n":0}' "$current/state/messages/push")
for n in 1 2 3 4 5 6 7 8; do
    ask --fail --output /dev/null --header "x-thread-id: $signed" \
        --json "{\"n\":$n}" "$current/state/messages/push"
done
total=$(ask --output /dev/null --cookie "$dir/jar" --write-out '%header{x-total-count}' \
    "$current/state/messages?tail=1")
[ "$total" = 9 ] || fail "9 messages were pushed, $total are there"
for place in 2 3 4; do
    ask "http://127.0.0.$place:$replica_port/metrics" | grep push >/dev/null ||
        fail "replica $place was not asked"
done

# The api key of the file is one.
key=$(cut -d: -f2 "$dir/keys/api")
answers 200 --header "authorization: Bearer $key" "$base/v1/threads/${signed%%;*}" ||
    fail "the api key was refused"

# https is believed from the balancer alone.
is_secure() {
    ask --output /dev/null --dump-header - "$@" | grep -i '^set-cookie:.*; *secure' >/dev/null
}
is_secure --header 'x-forwarded-proto: https' "$current" || fail "https was not passed on"
! is_secure "$current" || fail "http was taken for https"
! is_secure --interface 127.0.0.9 --header 'x-forwarded-proto: https' \
    "http://127.0.0.2:$replica_port/v1/threads/current" || fail "a stranger was believed"

# A replica that stops is not missed.
first=${replicas# }
first=${first%% *}
kill "$first"
for n in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    answers 200 --header "x-thread-id: $signed" "$current/state" ||
        fail "request $n failed as a replica stopped"
done

# Without Redis the service says so in its own words, and without the service the balancer does.
kill "$redis"
wait "$redis" || true
until_it grep -q 'backend.*ready.*has no server available' "$dir/balancer.log"
ask --header "x-thread-id: $signed" "$current/state" | grep '"request_id"' >/dev/null ||
    fail "nobody said that Redis is down"
for replica in $replicas; do
    kill "$replica" 2>/dev/null || true
    wait "$replica" || true
done
until_it answers 503 "$base/healthz"
ask --dump-header - "$base/healthz" | tr -d '\r' >"$dir/answer"
for line in '^content-type: application/problem+json$' '^retry-after: ' '"code":"store_unavailable"'; do
    grep -qi "$line" "$dir/answer" || fail "the balancer's own 503 lacks $line"
done

echo "balancer: three replicas behind HAProxy answer as docker-compose.yml has them"
