#!/bin/sh
# Runs the services of docker-compose.yml as processes on this Linux machine: a Redis with an append-only file, three
# replicas behind a DNS name, and HAProxy with deploy/haproxy.cfg.
#
#   scripts/cluster-local.sh up [--dir DIR] [--port PORT]   starts the services that are not running
#   scripts/cluster-local.sh status [--dir DIR]             fails unless all services are running
#   scripts/cluster-local.sh down [--dir DIR]               stops all services and keeps DIR
#
# DIR (default: target/cluster) contains keys, data and logs. Add DIR/threadkeep.toml to configure the replicas, and
# DIR/haproxy.cfg to replace deploy/haproxy.cfg. HAProxy listens on the loopback address at PORT (default: 8080; 0
# selects any free port). Set THREADKEEP_BIN to use a program other than target/release/threadkeep. Needs redis-server,
# haproxy, dnsmasq, curl, flock and python3.
set -eu
umask 077

usage() {
    sed -n 's/^#   //p' "$0" >&2
    exit 2
}

fail() {
    echo "cluster-local: $*" >&2
    exit 1
}

start_dir=$PWD
root=$(cd "$(dirname "$0")/.." && pwd)
dir=$root/target/cluster
port=
[ $# -gt 0 ] || usage
command=$1
shift
while [ $# -gt 0 ]; do
    case $1 in
    --dir | --port)
        [ -n "${2:-}" ] || usage
        [ "$1" = --dir ] && dir=$2 || port=$2
        shift 2
        ;;
    *) usage ;;
    esac
done
case $dir in
/*) ;;
*) dir=$start_dir/$dir ;;
esac
case $port in
*[!0-9]*) usage ;;
esac
# Debian installs haproxy and dnsmasq in these directories
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin

replicas='replica1 replica2 replica3'

# process PID: prints the state and start time (proc_pid_stat(5)). Skips the name, because it may contain spaces.
process() {
    [ -r "/proc/$1/stat" ] && sed 's/.*) //' "/proc/$1/stat" 2>/dev/null | cut -d ' ' -f 1,20
}

# is_running NAME: sets $pid. Also compares the start time, because the system may have reused the process id.
is_running() {
    pid=
    [ -s "$dir/run/$1" ] || return 1
    read -r pid started <"$dir/run/$1"
    case $(process "$pid") in
    # the process has exited, but was not reaped
    [ZX]*) return 1 ;;
    *" $started") return 0 ;;
    *) return 1 ;;
    esac
}

is_any_running() {
    for each in redis $replicas dns balancer; do
        ! is_running "$each" || return 0
    done
    return 1
}

# start NAME COMMAND...: starts COMMAND in its own session, so that it keeps running after this terminal is closed.
start() {
    name=$1
    shift
    [ ! -e "$dir/log/$name.log" ] || mv "$dir/log/$name.log" "$dir/log/$name.log.old"
    (cd "$dir" && exec setsid "$@") >"$dir/log/$name.log" 2>&1 </dev/null 9>&- &
    started=$(process $!) || started=
    echo "$! ${started#* }" >"$dir/run/$name"
}

# wait_until NAME COMMAND...: waits up to two minutes for COMMAND to succeed. Fails if the process NAME ends first.
wait_until() {
    name=$1
    shift
    tries=0
    until "$@" >/dev/null 2>&1; do
        tries=$((tries + 1))
        if [ "$tries" -gt 1200 ] || ! is_running "$name"; then
            tail -n 20 "$dir/log/$name.log" >&2
            fail "$name did not start; the rest still runs: $0 down --dir $dir"
        fi
        sleep 0.1
    done
}

answers() {
    curl --silent --fail --output /dev/null --max-time 30 "$1/readyz"
}

# address_of REPLICA: prints the replica's loopback address.
address_of() {
    echo "127.0.0.$((${1#replica} + 1))"
}

# ports COUNT [PORT]: prints COUNT random ports that are free for TCP and UDP on all addresses of the cluster. With
# PORT, prints only PORT, if it is free. Random ports are below the range that Linux uses for outgoing connections.
ports() {
    python3 -c 'import random, socket, sys
def is_free(port):
    try:
        for kind in socket.SOCK_STREAM, socket.SOCK_DGRAM:
            for host in 1, 2, 3, 4:
                with socket.socket(type=kind) as probe:
                    probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, kind == socket.SOCK_STREAM)
                    probe.bind((f"127.0.0.{host}", port))
    except OSError:
        return False
    return True
candidates = [int(port) for port in sys.argv[2:]] or random.sample(range(20000, 32000), 100)
print(*[port for port in candidates if is_free(port)][:int(sys.argv[1])])' "$@"
}

# Chooses ports. Keeps the current ports while any service runs.
choose_ports() {
    if is_any_running; then
        read -r replica_port dns_port listen <"$dir/ports"
        [ -z "$port" ] || [ "$port" = 0 ] || [ "$port" = "$listen" ] ||
            fail "it runs already, with port $listen"
        return
    fi
    # shellcheck disable=SC2046 # they are words
    set -- $(ports 3)
    replica_port=$1 dns_port=$2 listen=$3
    if [ "${port:-8080}" != 0 ]; then
        listen=$(ports 1 "${port:-8080}")
        [ -n "$listen" ] || fail "port ${port:-8080} is taken: --port names another, 0 a free one"
    fi
    echo "$replica_port $dns_port $listen" >"$dir/ports"
}

need() {
    for program in redis-server redis-cli haproxy dnsmasq curl flock python3 setsid; do
        command -v "$program" >/dev/null || missing="${missing:-}$program "
    done
    [ -z "${missing:-}" ] || fail "missing: $missing
On Debian: apt-get install redis-server haproxy dnsmasq-base curl python3"
    # unix(7) limits the length of socket paths
    [ "$(printf %s "$dir/redis.sock" | wc -c)" -le 107 ] || fail "$dir is too long a name"
}

up() {
    need
    if [ -n "${THREADKEEP_BIN:-}" ]; then
        bin=$(realpath "$THREADKEEP_BIN")
        [ -x "$bin" ] || fail "there is no program $bin"
    elif is_running redis && [ -x "$dir/bin/threadkeep" ]; then
        # a running cluster keeps its program
        bin=$(realpath "$dir/bin/threadkeep")
    else
        bin=$root/target/release/threadkeep builds=1
    fi
    cd "$root"
    # holds the lock until all processes are listening, so that another run of this script does not take their ports
    exec 9>"${TMPDIR:-/tmp}/threadkeep-cluster-$(id -u).lock"
    flock 9
    mkdir -p "$dir/bin" "$dir/keys" "$dir/log" "$dir/redis" "$dir/run"
    choose_ports
    [ -z "${builds:-}" ] || (umask 022 && cargo build --release --locked)
    ln -sf "$bin" "$dir/bin/threadkeep"
    PATH="$dir/bin:$PATH" deploy/make-keys.sh "$dir/keys" >/dev/null

    is_running redis ||
        start redis redis-server --port 0 --unixsocket "$dir/redis.sock" --dir "$dir/redis" \
            --appendonly yes --appendfsync everysec --save '' --maxmemory 512mb \
            --maxmemory-policy noeviction --hash-max-ziplist-value 2048 \
            --hash-max-ziplist-entries 24 --lazyfree-lazy-expire yes \
            --lazyfree-lazy-server-del yes
    wait_until redis redis-cli -e -s "$dir/redis.sock" ping

    set -- --host-record=threadkeep,127.0.0.2 --host-record=threadkeep,127.0.0.3 \
        --host-record=threadkeep,127.0.0.4
    is_running dns ||
        start dns dnsmasq --keep-in-foreground --conf-file=/dev/null --no-resolv --no-hosts \
            --pid-file= --user= --listen-address=127.0.0.1 --bind-interfaces --port="$dns_port" \
            --log-facility=- "$@"

    # a later `up` without the variable uses the same signing key
    if [ -n "${THREADKEEP_SIGNING_KEY+set}" ]; then
        printf '%s\n' "$THREADKEEP_SIGNING_KEY" >"$dir/signing-key"
    fi
    signing_key=$(cat "$dir/signing-key" 2>/dev/null || true)
    for replica in $replicas; do
        # starts with an empty environment
        is_running "$replica" ||
            start "$replica" env -i \
                THREADKEEP_LISTEN="$(address_of "$replica"):$replica_port" \
                THREADKEEP_REDIS_URL="unix://$dir/redis.sock" \
                THREADKEEP_SIGNING_KEYS_FILE="$dir/keys/signing" \
                ${signing_key:+THREADKEEP_SIGNING_KEY="$signing_key"} \
                THREADKEEP_API_KEYS_FILE="$dir/keys/api" \
                THREADKEEP_TRUSTED_PROXIES=127.0.0.1 \
                THREADKEEP_RATE_NEW_THREADS=60/1m \
                THREADKEEP_RATE_WRITES=600/1m \
                THREADKEEP_WORKERS=1 \
                THREADKEEP_DRAIN_SECONDS=3 \
                "$dir/bin/threadkeep"
    done
    for replica in $replicas; do
        wait_until "$replica" answers "http://$(address_of "$replica"):$replica_port"
    done

    if ! is_running balancer; then
        config=$root/deploy/haproxy.cfg
        [ ! -e "$dir/haproxy.cfg" ] || config=$dir/haproxy.cfg
        start balancer env LISTEN="127.0.0.1:$listen" DNS="127.0.0.1:$dns_port" \
            REPLICAS="threadkeep:$replica_port" haproxy -db -f "$config"
        for number in 1 2 3; do
            wait_until balancer grep -q "Server ready/replica$number\>.*UP" "$dir/log/balancer.log"
        done
    fi
    wait_until balancer answers "http://127.0.0.1:$listen"
    print_addresses
}

print_addresses() {
    echo "threadkeep answers at http://127.0.0.1:$listen"
    for replica in $replicas; do
        echo "  $replica      http://$(address_of "$replica"):$replica_port"
    done
    cat <<END
  redis         $dir/redis.sock
  console       http://127.0.0.1:$listen/console
  api key       export THREADKEEP_URL=http://127.0.0.1:$listen THREADKEEP_API_KEY=\$(cut -d: -f2 $dir/keys/api)
  signing key   $dir/keys/signing
  logs          $dir/log
  to stop it    $0 down$([ "$dir" = "$root/target/cluster" ] || echo " --dir $dir")
END
}

status() {
    [ -s "$dir/ports" ] || fail "there is nothing in $dir"
    read -r replica_port dns_port listen <"$dir/ports"
    sick=0
    for each in redis dns $replicas balancer; do
        case $each in
        redis) address=$dir/redis.sock ;;
        dns) address=127.0.0.1:$dns_port ;;
        balancer) address=http://127.0.0.1:$listen ;;
        *) address=http://$(address_of "$each"):$replica_port ;;
        esac
        state=up
        if ! is_running "$each"; then
            state=down
        elif [ "${address#http}" != "$address" ] && ! answers "$address"; then
            state='not ready'
        fi
        [ "$state" = up ] || sick=1
        printf '%-10s %-10s %-8s %s\n' "$each" "$state" "$pid" "$address"
    done
    exit "$sick"
}

# stop NAME...: stops processes. Kills them after 40 seconds, which is longer than replicas wait for their requests.
stop() {
    for each; do
        # the process may end before the signal
        ! is_running "$each" || kill "$pid" 2>/dev/null || :
    done
    for each; do
        tries=0
        while is_running "$each"; do
            tries=$((tries + 1))
            if [ "$tries" -gt 400 ]; then
                echo "cluster-local: $each does not stop and is killed" >&2
                kill -9 "$pid" 2>/dev/null || :
            fi
            sleep 0.1
        done
        rm -f "$dir/run/$each"
    done
}

case $command in
up) up ;;
status) status ;;
down)
    stop balancer
    # shellcheck disable=SC2086 # they are words
    stop $replicas
    stop dns redis
    ;;
*) usage ;;
esac
