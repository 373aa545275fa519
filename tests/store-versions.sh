#!/bin/sh
# Runs the tests of stores on other versions of Redis and Valkey than the machine's own, which all other tests run on:
#
#   tests/store-versions.sh              a part of them, on one version: a different one each day
#   tests/store-versions.sh all          all of them, on each version
#   tests/store-versions.sh VERSION...   all of them, on these, of `tests/stores.sh list`
#
# THREADKEEP_STORE_VERSION chooses the one version. The part leaves out faults, random lists and writes that wait for
# replicas. If the source of the day's version no longer has it, the next one takes its turn.
set -eu

cd "$(dirname "$0")/.."

part='conformance:: versions::'
not_part='::confirmed'
whole='clocks:: confirmed:: conformance:: connections:: corrupt:: costs:: crashes:: differential:: erasure:: events:: full::
    library:: linearizable:: lists:: lost_data:: rotation:: scope_lists:: slots:: versions::'

# run THREADS ARGUMENT...: runs tests of tests/it, THREADS at once.
run() {
    threads=$1
    shift
    RUST_TEST_THREADS=$threads timeout --kill-after=10 1500 \
        cargo test --locked --workspace --test it -- --skip ::memory:: "$@"
}

# Prints the name that tests/stores.sh has for the version of a server.
name_of() {
    "$1" --version | sed -n 's/^\([A-Za-z]*\) server v=\([0-9]*\.[0-9]*\)\..*/\1-\2/p' | tr '[:upper:]' '[:lower:]'
}

# Has the tests start that version's programs.
use() {
    directory=$(tests/stores.sh install "$1") || return
    PATH=$directory:$path
    [ "$(name_of redis-server)" = "$1" ] || {
        echo "redis-server is $(name_of redis-server) instead of $1" >&2
        return 1
    }
    printf '\n%s: %s\n' "$1" "$(redis-server --version)"
}

# Prints the options that leave out tests for which a server is built without a feature.
left_out() {
    redis-cli --help 2>&1 | grep -q -- --tls || echo '--skip connections::tls_'
}

# shellcheck disable=SC2046,SC2086 # they are words
run_part() {
    run "$((2 * $(nproc)))" $part --skip $not_part
}

# Tests of faults measure how long clients wait, so only as many run at the same time as there are cores.
# shellcheck disable=SC2046,SC2086 # they are words
run_whole() {
    run "$((2 * $(nproc)))" $whole --skip faults:: $(left_out)
    run "$(nproc)" faults::
}

# Prints the versions that the machine itself does not have.
others() {
    own=$(name_of redis-server)
    tests/stores.sh list | grep -vxF "$own"
}

# Prints these words with the given number of them moved from the beginning to the end.
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
    # shellcheck disable=SC2046 # they are words
    set -- $(others)
    candidates=${THREADKEEP_STORE_VERSION:-$(rotated "$(($(date +%s) / 86400 % $#))" "$@")}
    for version in $candidates; do
        status=0
        use "$version" || status=$?
        case $status in
        0)
            run_part
            exit
            ;;
        77) ;;
        *) exit "$status" ;;
        esac
    done
    exit 77
fi

if [ "$1" = all ]; then
    # shellcheck disable=SC2046 # they are words
    set -- $(others)
fi
for version in "$@"; do
    use "$version"
    run_whole
done
