#!/bin/sh
# Runs tests N times on one core, which they share with a busy loop, to find tests that depend on timing.
#
#   tests/again.sh N NAME...              tests whose path contains a NAME
#   tests/again.sh N tests/SUITE.sh ...   a suite, with its arguments
#
# Stops at the first failure.
set -eu

[ $# -ge 2 ] || {
    sed -n 's/^#   //p' "$0" >&2
    exit 2
}
count=$(($1))
shift
cd "$(dirname "$0")/.."
# shellcheck source=tests/chosen.sh
. tests/chosen.sh
case $1 in
tests/*.sh) ;;
*) set -- test_chosen "$@" ;;
esac

# build and run once on all cores
"$@"

core=$(($(nproc) - 1))
taskset -c "$core" sh -c 'while :; do :; done' &
busy=$!
trap 'kill "$busy"' EXIT
trap 'exit 130' INT TERM
taskset -cp "$core" $$ >/dev/null
for run in $(seq "$count"); do
    echo "run $run of $count"
    "$@"
done
