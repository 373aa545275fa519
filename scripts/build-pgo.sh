#!/bin/sh
# Builds the service with profile-guided optimization
# (https://doc.rust-lang.org/rustc/profile-guided-optimization.html). Collects a profile by running the load test on an
# instrumented build, with Redis and with the embedded store, and builds the release with this profile.
# benches/README.md lists the gains.
#
#   scripts/build-pgo.sh [SECONDS]    duration of each scenario on each store (default: 10)
#
# Writes target/pgo/threadkeep. Needs redis-server, and llvm-profdata from LLVM 19 or later (rustup's component
# llvm-tools or Debian's package llvm-19). To prefer a specific llvm-profdata, set LLVM_PROFDATA to its path.
set -eu

cd "$(dirname "$0")/.."
seconds=${1:-10}
users=32
redis_port=16379
pgo=$PWD/target/pgo
host=$(rustc -vV | sed -n 's/^host: //p')

fail() {
    echo "build-pgo: $*" >&2
    exit 1
}

# version PROGRAM: prints the program's LLVM version.
version() {
    "$1" --version 2>/dev/null | sed -n 's/.*LLVM version \([0-9]*\).*/\1/p'
}

# Prints the name or path of the first llvm-profdata that is recent enough (LLVM 19) to read the compiler's profiles.
find_profdata() {
    for program in "${LLVM_PROFDATA:-}" "$(rustc --print target-libdir)/../bin/llvm-profdata" \
        llvm-profdata llvm-profdata-22 llvm-profdata-21 llvm-profdata-20 llvm-profdata-19; do
        number=$(version "$program")
        if [ "${number:-0}" -ge 19 ]; then
            echo "$program"
            return
        fi
    done
    fail 'there is no llvm-profdata of LLVM 19: rustup component add llvm-tools, or apt-get install llvm-19'
}

# build DIRECTORY FLAG: builds the service with a compiler flag, which may contain spaces. Because of --target, cargo
# does not apply the flag to build scripts.
build() {
    (
        unset RUSTFLAGS
        CARGO_ENCODED_RUSTFLAGS=$2 cargo build --quiet --locked --profile dist --bin threadkeep \
            --target "$host" --target-dir "$pgo/$1"
    )
}

pids=
# shellcheck disable=SC2317 # called by the trap
stop_all() {
    # shellcheck disable=SC2086 # they are words
    [ -z "$pids" ] || kill $pids 2>/dev/null || true
}
trap stop_all EXIT
trap 'exit 1' HUP INT TERM

# starts PID LOG COMMAND...: waits up to 10 seconds for COMMAND to succeed, which means that process PID has started.
starts() {
    pid=$1 log=$2 tries=100
    shift 2
    until "$@" >/dev/null 2>&1; do
        tries=$((tries - 1))
        if [ "$tries" -eq 0 ] || ! kill -0 "$pid" 2>/dev/null; then
            fail "this did not start: $(cat "$log")"
        fi
        sleep 0.1
    done
}

address() {
    sed -n 's/.*"listening","address":"\([^"]*\)".*/\1/p' "$pgo/serve.log" | grep .
}

# train [REDIS URL]: runs the load test on the instrumented build, without this shell's settings and proxy variables.
train() {
    : >"$pgo/serve.log"
    (
        # this directory has no threadkeep.toml
        cd "$pgo"
        exec env -i LLVM_PROFILE_FILE="$pgo/raw/%p.profraw" THREADKEEP_REDIS_URL="${1:-}" \
            THREADKEEP_LISTEN=127.0.0.1:0 THREADKEEP_WORKERS=1 \
            "$pgo/counting/$host/dist/threadkeep" serve >"$pgo/serve.log" 2>&1
    ) &
    service=$!
    pids="$pids $service"
    starts "$service" "$pgo/serve.log" address
    # omits the scenario `large`, because the work for its large bodies would dominate the profile
    for scenario in chat hot merge tools; do
        env -i "$pgo/load/debug/threadkeep-load" --host "http://$(address)" --scenario "$scenario" \
            --users "$users" --seconds "$seconds" --report "$pgo/report" >"$pgo/load.log" 2>&1 ||
            fail "the load test failed: $(cat "$pgo/load.log")"
    done
    # the process writes its counts when it ends
    kill "$service" 2>/dev/null || true
    wait "$service" || fail "the counting service failed: $(cat "$pgo/serve.log")"
}

profdata=$(find_profdata)
command -v redis-server >/dev/null || fail 'redis-server is missing'

cargo build --quiet --locked --package threadkeep-load --target-dir "$pgo/load"
build counting "-Cprofile-generate=$pgo/raw"

rm -rf "$pgo/raw"
: >"$pgo/redis.log"
redis-server --port "$redis_port" --bind 127.0.0.1 --save '' --appendonly no --dir "$pgo" >"$pgo/redis.log" 2>&1 &
redis=$!
pids=$redis
starts "$redis" "$pgo/redis.log" grep -q 'Ready to accept' "$pgo/redis.log"
train "redis://127.0.0.1:$redis_port"
kill "$redis"
train
# prevents the trap from killing other processes that the system starts with the same ids during the build
pids=

# with `--sparse`, functions that the load test never runs are optimized as usual, instead of as rarely used code
"$profdata" merge --sparse --output "$pgo/threadkeep.profdata" "$pgo"/raw/*.profraw
# cargo compares only compiler flags, so it would not rebuild the program if only the contents of the profile changed
rm -rf "$pgo/optimized"
build optimized "-Cprofile-use=$pgo/threadkeep.profdata"
cp "$pgo/optimized/$host/dist/threadkeep" "$pgo/threadkeep"
echo "$pgo/threadkeep"
