#!/bin/sh
# Runs the store tests on other versions of Redis and Valkey. The other tests use only the machine's own Redis.
#
#   tests/store-versions.sh              some tests, on one of the other versions, a different one each day
#   tests/store-versions.sh all          all tests, on each of the other versions
#   tests/store-versions.sh VERSION...   all tests, on these versions from `tests/stores.sh list`
#
# THREADKEEP_STORE_VERSION overrides the version of the day. If the version of the day is no longer available, the
# script uses the next version. The first form skips tests of faults, random lists, and writes that wait for replicas.
set -eu

cd "$(dirname "$0")/.."
[ -n "${THREADKEEP_BIN:-}" ] || python3 tests/build.py

quick_tests='conformance:: versions::'
quick_skipped='::confirmed'
full_tests='clocks:: confirmed:: conformance:: connections:: corrupt:: costs:: crashes:: differential:: erasure:: events::
    full:: library:: linearizable:: lists:: lost_data:: scope_lists:: slots:: versions::'

# run PROGRAM THREADS ARGUMENT...: runs the tests of target/tests/PROGRAM on THREADS threads.
run() {
    program=$1
    threads=$2
    shift 2
    RUST_TEST_THREADS=$threads "target/tests/$program" --skip ::memory:: "$@"
}

# name_of PROGRAM: prints the version of a server program in the format of `tests/stores.sh list`.
name_of() {
    "$1" --version | sed -n 's/^\([A-Za-z]*\) server v=\([0-9]*\.[0-9]*\)\..*/\1-\2/p' | tr '[:upper:]' '[:lower:]'
}

# use VERSION: puts the programs of a version first on the PATH.
use() {
    directory=$(tests/stores.sh install "$1") || return
    PATH=$directory:$path
    [ "$(name_of redis-server)" = "$1" ] || {
        echo "redis-server is $(name_of redis-server) instead of $1" >&2
        return 1
    }
    printf '\n%s: %s\n' "$1" "$(redis-server --version)"
}

# Prints options that skip tests of features that this redis-server lacks.
unsupported_tests() {
    redis-cli --help 2>&1 | grep -q -- --tls || echo '--skip connections::tls_'
}

# shellcheck disable=SC2046,SC2086 # split into words
run_quick() {
    run it "$((2 * $(nproc)))" $quick_tests --skip $quick_skipped
}

# Tests of faults measure how long clients wait, so only one test per core runs at a time.
# shellcheck disable=SC2046,SC2086 # split into words
run_full() {
    run it "$((2 * $(nproc)))" $full_tests --skip faults:: $(unsupported_tests)
    run contract "$((2 * $(nproc)))" rotation::
    run it "$(nproc)" faults::
}

# Prints all versions except the version of the machine's own Redis.
other_versions() {
    own=$(name_of redis-server)
    tests/stores.sh list | grep -vxF "$own"
}

# rotated COUNT WORD...: prints the words with the first COUNT words moved to the end.
rotated() {
    count=$1
    shift
    while [ "$count" -gt 0 ]; do
        set -- "$@" "$1"
        shift
        count=$((count - 1))
    done
    echo "$@"
}

path=$PATH
if [ "$#" = 0 ]; then
    # shellcheck disable=SC2046 # split into words
    set -- $(other_versions)
    candidates=${THREADKEEP_STORE_VERSION:-$(rotated "$(($(date +%s) / 86400 % $#))" "$@")}
    for version in $candidates; do
        status=0
        use "$version" || status=$?
        case $status in
        0)
            run_quick
            exit
            ;;
        77) ;;
        *) exit "$status" ;;
        esac
    done
    exit 77
fi

if [ "$1" = all ]; then
    # shellcheck disable=SC2046 # split into words
    set -- $(other_versions)
fi
tested=
for version in "$@"; do
    status=0
    use "$version" || status=$?
    case $status in
    0)
        run_full
        tested=1
        ;;
    77) ;;
    *) exit "$status" ;;
    esac
done
[ -n "$tested" ] || exit 77
