#!/bin/sh
# Tests the npm package of clients/typescript as it is installed: the output of `npm pack`, on both stores. The build
# here leaves out the adapters: tests/typescript-adapters.sh tests them, and checks the exports of the whole package.
#
# usage: tests/typescript.sh [long]
#
# `long` adds React 18, Node 22 and 24 for all tests of the client, and 200 first visits at once instead of 20.
# THREADKEEP_BIN names another program than target/debug/threadkeep, and CHROMIUM, FIREFOX and WEBKIT other browsers
# than those of Debian. Those that are not installed are left out.
set -eu
cd "$(dirname "$0")/.."

# shellcheck source=tests/packages.sh
. tests/packages.sh

[ -n "${THREADKEEP_BIN:-}" ] || cargo build --quiet
THREADKEEP_BIN=$(realpath "${THREADKEEP_BIN:-target/debug/threadkeep}")
PACKAGE=$PWD/clients/typescript
REPOSITORY=$PWD
RUNTIMES=$PWD/target/typescript/runtimes/node_modules
export THREADKEEP_BIN PACKAGE REPOSITORY RUNTIMES
work=$PWD/target/typescript

# tests that need a server, and those that one store is enough for
on_each_store="threads first-visit faults events kv-and-scopes admin react"
once="browsers contract package runtimes ssr samples stream-parsing visits web-chat"

# quiet_ci DIRECTORY: its packages as the lock file names them, without their scripts.
quiet_ci() {
    npm ci --prefix "$1" --no-audit --no-fund --loglevel=error --ignore-scripts
}

# ci_below_target NAME: the packages of clients/typescript/tests/NAME, in a directory of the same name below target/.
ci_below_target() {
    if ! cmp -s "$PACKAGE/tests/$1/package-lock.json" "$work/$1/installed"; then
        mkdir -p "$work/$1"
        cp "$PACKAGE/tests/$1/package.json" "$PACKAGE/tests/$1/package-lock.json" "$work/$1"
        quiet_ci "$work/$1"
        cp "$PACKAGE/tests/$1/package-lock.json" "$work/$1/installed"
    fi
}

# install_package DIRECTORY MODULES: the packed package and the tests. React is of MODULES.
install_package() {
    rm -rf "$1"
    mkdir -p "$1/node_modules"
    echo '{"private":true,"type":"module"}' >"$1/package.json"
    npm install --prefix "$1" --no-audit --no-fund --loglevel=error --ignore-scripts --legacy-peer-deps "$archive"
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

# run_tests NODE STORE DIRECTORY NAME...
run_tests() {
    node=$1
    store=$2
    directory=$3
    shift 3
    echo "typescript: $* on $store with Node $("$node" --version)"
    # shellcheck disable=SC2046 # words
    (cd "$directory" && STORE=$store nice "$node" --test --test-concurrency=2 --test-timeout=600000 \
        --test-reporter=spec $(printf 'tests/%s.test.js ' "$@"))
}

locked quiet_ci "$PACKAGE"
(cd "$PACKAGE" && npm run --silent build)
mkdir -p "$work"
locked ci_below_target runtimes
archive=$work/$(cd "$PACKAGE" && npm pack --silent --pack-destination "$work")
install_package "$work/installed" "$PACKAGE/node_modules"

# its test installs them, as its command does for a user
rm -rf examples/web-chat/node_modules

"$PACKAGE/node_modules/.bin/tsc" -p "$PACKAGE/tests"
[ "${1:-}" != long ] || export VISITS=200
# shellcheck disable=SC2086 # names
run_tests node memory "$work/installed" $on_each_store $once
"$PACKAGE/node_modules/.bin/tsc" -p examples/web-chat
# shellcheck disable=SC2086 # names
run_tests node redis "$work/installed" $on_each_store

if [ "${1:-}" = long ]; then
    for version in 22 24; do
        # shellcheck disable=SC2086 # names
        run_tests "$RUNTIMES/node-$version/bin/node" redis "$work/installed" $on_each_store stream-parsing
    done
    locked ci_below_target react-18
    install_package "$work/installed-react-18" "$work/react-18/node_modules"
    run_tests node memory "$work/installed-react-18" react ssr
fi
