#!/bin/sh
# Tests docker-compose.yml in containers. Builds the images and runs the documented commands. Runs the load test while
# replicas restart, processes are killed, and a replica loses its network.
#
# Uses the running Docker engine if there is one. Otherwise, starts an engine as root from Debian's package docker.io,
# and exits with 77 if that fails. Without an image registry, builds the base images from Debian's packages with
# debootstrap. The image build then copies the programs from target/debug instead of running cargo.
set -eu

cd "$(dirname "$0")/.."
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
dir=$(mktemp -d)
engine=
load=
export COMPOSE_PROJECT_NAME="threadkeep-test-$$"

failure=

fail() {
    failure="$0: $*"
    echo "$failure" >&2
    exit 1
}

skip() {
    printf '%s\n' "$0: SKIPPED: $*" >&2
    exit 77
}

# shellcheck disable=SC2317 # called by the trap
finish() {
    status=$?
    trap - EXIT
    [ -z "$load" ] || kill "$load" 2>/dev/null || true
    if [ -d "$dir/project" ]; then
        cd "$dir/project"
        [ "$status" = 0 ] || compose logs --no-color --tail 20 >&2 || true
        compose --profile load --profile models down --volumes --timeout 1 >"$dir/down.log" 2>&1 || true
        cd /
    fi
    if [ -n "$engine" ]; then
        kill "$engine" 2>/dev/null || true
        wait "$engine" 2>/dev/null || true
    fi
    rm -rf "$dir"
    # repeat the failure below the logs
    [ -z "$failure" ] || echo "$failure" >&2
    exit "$status"
}
trap finish EXIT
trap 'exit 130' INT TERM

# Waits up to five minutes until a command succeeds.
until_it() {
    deadline=$(($(date +%s) + 300))
    until "$@" >/dev/null 2>&1; do
        [ "$(date +%s)" -lt "$deadline" ] || fail "gave up: $*"
        sleep 0.2
    done
}

# quietly COMMAND...: prints its output only if it fails.
quietly() {
    "$@" >"$dir/quietly.log" 2>&1 || fail "$* failed: $(cat "$dir/quietly.log")"
}

step() {
    printf '%4s s  %s\n' "$(($(date +%s) - started))" "$*"
}

start_engine() {
    ! docker info >/dev/null 2>&1 || return 0
    [ "$(id -u)" = 0 ] || skip "no Docker engine answers, and only root can start one"
    command -v dockerd >/dev/null || skip "Docker is not installed"
    export DOCKER_HOST="unix://$dir/docker.sock"
    dockerd --host "$DOCKER_HOST" --data-root "$dir/engine" --exec-root "$dir/exec" --pidfile "$dir/docker.pid" \
        >"$dir/engine.log" 2>&1 &
    engine=$!
    tries=0
    until docker info >/dev/null 2>&1; do
        tries=$((tries + 1))
        if [ "$tries" -gt 300 ] || ! kill -0 "$engine" 2>/dev/null; then
            skip "the Docker engine does not start: $(tail -n 3 "$dir/engine.log")"
        fi
        sleep 0.1
    done
}

# Debian packages Docker Compose 1 as a separate program, which needs -T without a terminal and lacks `run --build`.
if docker compose version >/dev/null 2>&1; then
    compose() { docker compose "$@"; }
    adapt_commands() { cat; }
else
    compose() { docker-compose "$@"; }
    adapt_commands() { sed 's/docker compose/docker-compose/; s/ run --build/ run/; s/ \(run\|exec\) / \1 -T /'; }
    # prefer Debian's Docker client, which contains BuildKit; other clients need a plugin for BuildKit
    mkdir "$dir/bin"
    [ ! -x /usr/bin/docker ] || ln -s /usr/bin/docker "$dir/bin"
    PATH=$dir/bin:$PATH
    export COMPOSE_DOCKER_CLI_BUILD=1 DOCKER_BUILDKIT=1
fi

# build_stand_in IMAGE [LINE...]: builds IMAGE from the Debian image and the given Dockerfile lines.
build_stand_in() {
    image=$1
    shift
    printf '%s\n' 'FROM debian:bookworm-slim' "$@" >"$dir/base/Dockerfile"
    quietly docker build --tag "$image" "$dir/base"
}

# Builds the base images that the Dockerfile and the compose file name.
make_base_images() {
    ! docker pull --quiet debian:bookworm-slim >/dev/null 2>&1 || return 0
    step "no image registry is reachable: building the base images from Debian's packages"
    command -v debootstrap >/dev/null || skip "debootstrap is not installed"
    quietly debootstrap --variant=minbase --include=busybox,ca-certificates,haproxy,make,redis-server \
        bookworm "$dir/root"
    # all packages are already installed; without these files, apt-get cannot look for newer versions
    rm -r "$dir/root/etc/apt/sources.list" "$dir/root/var/cache/apt/archives"
    tar -C "$dir/root" -c . | quietly docker import - debian:bookworm-slim
    rm -r "$dir/root"

    mkdir "$dir/base"
    cp target/debug/threadkeep target/debug/threadkeep-load "$dir/base"
    strip "$dir/base/threadkeep" "$dir/base/threadkeep-load"
    cat >"$dir/base/cargo" <<'CARGO'
#!/bin/sh
mkdir -p target/dist
cp /usr/local/lib/threadkeep /usr/local/lib/threadkeep-load target/dist/
CARGO
    chmod +x "$dir/base/cargo"
    build_stand_in "rust:$(sed -n 's/^ARG RUST_VERSION=//p' Dockerfile)-slim-bookworm" \
        'COPY cargo /usr/local/bin/' 'COPY threadkeep threadkeep-load /usr/local/lib/'
    build_stand_in "$(sed -n 's/.*image: \(redis:.*\)/\1/p' docker-compose.yml)" \
        'RUN install --directory --owner=redis /data' 'WORKDIR /data'
    build_stand_in "$(sed -n 's/.*image: \(haproxy:.*\)/\1/p' docker-compose.yml)" \
        'RUN ln -s /bin/busybox /usr/local/bin/wget' 'USER haproxy' \
        'CMD ["haproxy", "-W", "-db", "-f", "/usr/local/etc/haproxy/haproxy.cfg"]'
}

# commands FILE: prints the `docker compose` commands in FILE. Omits commands with the profile `metrics`, because no
# Debian package provides the images of this profile.
commands() {
    sed -n '/--profile metrics/d; s/^docker compose/&/p' "$1" | adapt_commands
}

replicas() {
    compose ps --quiet threadkeep
}

is_healthy() {
    [ "$(docker inspect --format '{{.State.Health.Status}}' "$1")" = healthy ]
}

# kill_process CONTAINER: simulates a crash of the main process. Does not use `docker kill`, because Docker would not
# restart the container.
kill_process() {
    killed=$(docker inspect --format '{{.State.Pid}}' "$1")
    docker run --rm --pid host debian:bookworm-slim sh -c "kill -KILL $killed"
    until_it has_restarted "$1" "$killed"
}

# Asks a replica for readiness, as the balancer does.
is_ready() {
    docker exec "$1" busybox wget -q -O /dev/null http://127.0.0.1:8080/readyz
}

is_cut_off() {
    ! is_ready "$1"
}

has_restarted() {
    is_healthy "$1" && [ "$(docker inspect --format '{{.State.Pid}}' "$1")" != "$2" ]
}

# acknowledged COUNT: succeeds if more than COUNT pushes were acknowledged.
acknowledged() {
    [ "$(sed -n 's/.* \([0-9]*\) pushes acknowledged.*/\1/p' "$dir/$name.log" | tail -n 1)" -gt "$1" ]
}

# start_load NAME [ARGUMENT...]: starts the load test in the background, and waits until pushes are acknowledged.
start_load() {
    name=$1
    shift
    "$load_test" --host "$base" --api-key "$api_key" --users 10 --pause-ms 20 --seconds 3600 \
        --report "$dir/report-$name" "$@" >"$dir/$name.log" 2>&1 &
    load=$!
    until_it acknowledged 0
}

# end_load NAME: stops the load test and checks its verdict.
end_load() {
    kill -0 "$load" 2>/dev/null || fail "the load test ended too early: $(cat "$dir/$1.log")"
    until_it acknowledged 200
    kill -INT "$load"
    wait "$load" || fail "the load test failed: $(cat "$dir/$1.log")"
    load=
    sed -n '/^GOOD/,$p' "$dir/$1.log"
    python3 - "$dir/report-$1/mixed.json" <<'PYTHON'
import json
import sys

with open(sys.argv[1], encoding="utf-8") as file:
    account = json.load(file)["account"]
pushes = account["pushes"]
assert pushes["acknowledged"] > 200, pushes
assert pushes["verified"] == pushes["acknowledged"], pushes
assert not account["findings"], account
PYTHON
}

started=$(date +%s)
[ -x target/debug/threadkeep ] || cargo build --quiet --locked
[ -x target/debug/threadkeep-load ] || cargo build --quiet --locked --package threadkeep-load
start_engine
make_base_images

# work on a copy, because the load test writes reports next to the compose file
mkdir "$dir/project"
cp -r .dockerignore Cargo.toml Cargo.lock Dockerfile README.md crates deploy docker-compose.yml docs load scripts src \
    tests tools "$dir/project"
root=$PWD
# choose ports below the range that Linux uses for outgoing connections
ports=$(python3 -c 'import random, socket
def is_free(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0
print(*[port for port in random.sample(range(20000, 32000), 100) if is_free(port)][:2])')
port=${ports% *} models_port=${ports#* }
export THREADKEEP_PORT="$port" THREADKEEP_MODELS_PORT="$models_port" THREADKEEP_SUBNET="172.$((24 + $$ / 256 % 8)).$(($$ % 256)).0/24"
base=http://127.0.0.1:$port
cd "$dir/project"
# Extends the timeouts, so that slow containers and stores do not count as down on a busy machine. Extends the drain
# time too, because the balancer then takes longer to notice a stopping replica.
sed -i 's/^    timeout connect .*/&\n    timeout check 30s/' deploy/haproxy.cfg
sed -i 's/^      THREADKEEP_REDIS_URL: .*/&\n      THREADKEEP_STORE_TIMEOUT_MS: "10000"/
    s/DRAIN_SECONDS: .*/DRAIN_SECONDS: "10"/
    s/^      timeout: 3s/      timeout: 60s/' docker-compose.yml
mkdir load-report
quietly compose --profile load build
step "the images are built"

up=$(commands README.md)
quietly sh -c "$up"
until_it curl --silent --fail "$base/readyz"
step "the services are up: $up"
[ "$(replicas | wc -l)" = 3 ] || fail "there are not three replicas"

commands docs/deploy.md >"$dir/commands"
while read -r command; do
    # the default duration is longer than this test needs
    case $command in *' load') command="$command --seconds 10" ;; esac
    sh -c "$command" >"$dir/command.log" 2>&1 </dev/null || fail "$command failed: $(cat "$dir/command.log")"
    step "$command"
done <"$dir/commands"
grep -q GOOD load-report/mixed.html || fail "the report of the load test does not say GOOD"
api_key=$(compose exec -T threadkeep cut -d: -f2 /keys/api)

# run all compose commands in the copied project
load_test=$root/target/debug/threadkeep-load
start_load restarts
for replica in $(replicas); do
    quietly docker restart --time 40 "$replica"
    until_it is_healthy "$replica"
done
end_load restarts
step "three replicas were restarted one by one, and no request failed"

start_load kills --tolerate-outages
replica=$(replicas | head -n 1)
kill_process "$replica"
step "a replica was killed, and restarted"
# with appendfsync everysec, Redis may not write a change to disk until two seconds after its reply
quietly compose exec -T redis redis-cli config set appendfsync always
kill_process "$(compose ps --quiet redis)"
until_it curl --silent --fail "$base/readyz"
step "Redis was killed, and restarted with its data"
store=${COMPOSE_PROJECT_NAME}_store
quietly docker network disconnect "$store" "$replica"
until_it is_cut_off "$replica"
quietly docker network connect --alias threadkeep "$store" "$replica"
until_it is_ready "$replica"
step "the network between a replica and Redis was cut and restored"
quietly docker stop --time 40 "$replica"
sleep 1
quietly docker start "$replica"
until_it is_healthy "$replica"
end_load kills
step "all acknowledged pushes are stored"

# Rotates the signing key with the commands in the compose file.
threads=$base/v1/threads/current/state
signed=$(curl --silent --show-error --fail --output /dev/null --dump-header - --header 'content-type: application/json' \
    --data '{"n":1}' "$threads/messages/push" | tr -d '\r' | sed -n 's/^x-thread-id: //p')
sed -n '/^# To rotate/,/^# To change/s/^#   //p' docker-compose.yml | adapt_commands >"$dir/rotation"
echo THREADKEEP_SIGNING_KEY=second >.env
quietly sh -e "$dir/rotation"
until_it curl --silent --fail --header "x-thread-id: $signed" "$threads"
step "the replicas sign with another key, and accept earlier ids"

# this replica contacts its upstream only for responses
quietly compose --profile models up --detach models
until_it curl --silent --fail --header "authorization: Bearer $api_key" "http://127.0.0.1:$models_port/v1/models"
step "a replica that calls models is up"
echo "compose: three replicas in containers lost nothing"
