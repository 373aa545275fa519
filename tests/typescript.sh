#!/bin/sh
# Tests the npm package in clients/typescript, installed from `npm pack`. tests/typescript-adapters.sh tests the
# adapters and the exports.
#
#   tests/typescript.sh [redis]   with a redis-server
#   tests/typescript.sh memory    with the embedded store
#   tests/typescript.sh redis NAME...   only these tests, such as react
#   tests/typescript.sh long      with both stores, React 18, all client tests on Node 22 and 24, and 200 simultaneous
#                                 first visits instead of 20
#
# Set THREADKEEP_BIN to test a program other than target/debug/threadkeep. Set CHROMIUM, FIREFOX or WEBKIT to use a
# browser other than Debian's. Skips missing browsers.
set -eu
cd "$(dirname "$0")/.."

store=${1:-redis} is_long='' is_part=''
case $store in
memory | redis) ;;
long) store=redis is_long=1 ;;
*)
    echo 'usage: tests/typescript.sh [memory | redis | long] [NAME...]' >&2
    exit 2
    ;;
esac

# shellcheck source=tests/npm-package.sh
. tests/npm-package.sh

[ -n "${THREADKEEP_BIN:-}" ] || cargo build --quiet --locked --workspace
THREADKEEP_BIN=$(realpath "${THREADKEEP_BIN:-target/debug/threadkeep}")
REPOSITORY=$PWD
# use npm's cache if possible, because some tests install packages with the commands that a user would run
npm_config_prefer_offline=true
export THREADKEEP_BIN REPOSITORY npm_config_prefer_offline
work=$PWD/target/typescript

# tests to run on each store, and tests for which one store is enough, slowest first
on_each_store="react threads first-visit faults effects events kv-and-scopes admin"
once="web-chat visits browsers contract package runtimes install ssr samples stream-parsing proxied-tags credentials owner-check effect-requests"
if [ $# -gt 1 ]; then
    shift
    on_each_store=$* once='' is_part=1
fi

# install_package DIRECTORY MODULES: installs the packed package and the tests. Links React from MODULES.
install_package() {
    rm -rf "$1"
    mkdir -p "$1/node_modules/threadkeep"
    echo '{"private":true,"type":"module"}' >"$1/package.json"
    # unpacking is enough, because a test checks that the package has no dependencies and no install scripts
    tar -xzf "$archive" -C "$1/node_modules/threadkeep" --strip-components 1
    for name in react react-dom; do
        ln -s "$2/$name" "$1/node_modules/$name"
    done
    for name in @types esbuild playwright-core zod; do
        ln -s "$PACKAGE/node_modules/$name" "$1/node_modules/$name"
    done
    cp -r "$PACKAGE/tests" "$1/tests"
    "$PACKAGE/node_modules/.bin/esbuild" "$PACKAGE"/tests/*.ts "$PACKAGE"/tests/support/*.ts \
        --outbase="$PACKAGE/tests" --outdir="$1/tests" --format=esm --target=es2022 --log-level=warning
}

run_tests() {
    node=$1
    store=$2
    directory=$3
    shift 3
    echo "typescript: $* on $store with Node $("$node" --version)"
    # shellcheck disable=SC2046 # words
    (cd "$directory" && STORE=$store nice "$node" tests/support/run.js $(printf 'tests/%s.test.js ' "$@"))
}

pack_package
install_locked "$PACKAGE/tests/runtimes"
export RUNTIMES="$npm/node_modules"
mkdir -p "$work"
install_package "$work/installed" "$PACKAGE/node_modules"

# check types in parallel with the tests, which mostly wait
check_types() {
    nice "$PACKAGE/node_modules/.bin/tsc" -p "$PACKAGE/tests/tsconfig.core.json"
    nice "$PACKAGE/node_modules/.bin/tsc" -p "$PACKAGE/tests"
}
check_types >"$work/types.log" 2>&1 &
types=$!
rm -rf examples/web-chat/node_modules
[ -z "$is_long" ] || export VISITS=200
# shellcheck disable=SC2086 # names
run_tests node "$store" "$work/installed" $on_each_store $once
wait "$types" || {
    cat "$work/types.log" >&2
    exit 1
}
# the test web-chat has installed the packages of this example
[ -n "$is_part" ] || "$PACKAGE/node_modules/.bin/tsc" -p examples/web-chat

if [ -n "$is_long" ]; then
    # shellcheck disable=SC2086 # names
    run_tests node memory "$work/installed" $on_each_store
    for version in 22 24; do
        # shellcheck disable=SC2086 # names
        run_tests "$RUNTIMES/node-$version/bin/node" redis "$work/installed" $on_each_store stream-parsing
    done
    install_locked "$PACKAGE/tests/react-18"
    install_package "$work/installed-react-18" "$npm/node_modules"
    run_tests node memory "$work/installed-react-18" react ssr
fi
