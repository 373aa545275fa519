#!/bin/sh
# Runs the store tests on other versions of Redis and Valkey. The other tests use only the machine's own Redis.
#
#   tests/store-versions.sh [all]        on each of the other versions
#   tests/store-versions.sh VERSION...   on these versions from `tests/stores.sh list`
set -eu

cd "$(dirname "$0")/.."
[ -n "${THREADKEEP_BIN:-}" ] || python3 tests/build.py

tests='clocks:: confirmed:: conformance:: connections:: corrupt:: costs:: crashes:: differential:: erasure:: events::
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

# Tests of faults measure how long clients wait, so only one test per core runs at a time.
# shellcheck disable=SC2046,SC2086 # split into words
run_tests() {
    run it "$((2 * $(nproc)))" $tests --skip faults:: $(unsupported_tests)
    run contract "$((2 * $(nproc)))" rotation::
    run it "$(nproc)" faults::
}

# Prints all versions except the version of the machine's own Redis.
other_versions() {
    own=$(name_of redis-server)
    tests/stores.sh list | grep -vxF "$own"
}

path=$PATH
[ "$#" -gt 0 ] || set -- all
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
        run_tests
        tested=1
        ;;
    77) ;;
    *) exit "$status" ;;
    esac
done
[ -n "$tested" ] || exit 77
