#!/bin/sh
# Tests the npm package of clients/typescript as it is installed: the output of `npm pack`, on both stores.
#
# usage: tests/typescript.sh [long]
#
# `long` adds React 18, the other versions of Node, and the tests of Chromium on Redis.
# THREADKEEP_BIN names another program than target/debug/threadkeep. ONLY selects the files of tests by a pattern.
set -eu
cd "$(dirname "$0")/.."

# shellcheck source=tests/packages.sh
. tests/packages.sh

[ -n "${THREADKEEP_BIN:-}" ] || cargo build --quiet
THREADKEEP_BIN=$(realpath "${THREADKEEP_BIN:-target/debug/threadkeep}")
export THREADKEEP_BIN
package=$PWD/clients/typescript
only=${ONLY:-*}
npm_quietly="--no-audit --no-fund --loglevel=error --ignore-scripts"

# install_package MODULES DIRECTORY: the packed package, with the packages of MODULES beside it, and the tests.
install_package() {
    rm -rf "$2"
    mkdir -p "$2/node_modules"
    echo '{"private":true,"type":"module"}' >"$2/package.json"
    # shellcheck disable=SC2086 # words
    npm install --prefix "$2" $npm_quietly --legacy-peer-deps "$archive"
    for name in @types esbuild playwright-core react react-dom zod; do
        for modules in "$1" "$package/node_modules"; do
            if [ -e "$modules/$name" ]; then
                ln -s "$modules/$name" "$2/node_modules/$name"
                break
            fi
        done
    done
    cp -r "$package/tests" "$2/tests"
    "$package/node_modules/.bin/esbuild" "$package"/tests/*.ts "$package"/tests/support/*.ts \
        --outbase="$package/tests" --outdir="$2/tests" --format=esm --target=es2022 --log-level=warning
}

# run_tests NODE STORE DIRECTORY PATTERN
run_tests() {
    echo "typescript: $4 on $2 with Node $("$1" --version)"
    (
        cd "$3"
        # shellcheck disable=SC2086 # a pattern
        STORE=$2 PACKAGE=$package REPOSITORY=$package/../.. nice "$1" --test --test-concurrency=2 --test-timeout=90000 --test-reporter=spec tests/$4.test.js
    )
}

(cd "$package" && npm ci --no-audit --no-fund --loglevel=error --ignore-scripts && npm run --silent build)
target=$PWD/target/typescript
mkdir -p "$target"
archive=$target/$(cd "$package" && npm pack --silent --pack-destination "$target")
install_package "$package/node_modules" "$target/installed"

"$package/node_modules/.bin/tsc" -p "$package/tests"
for store in memory redis; do
    run_tests node "$store" "$target/installed" "$only"
done
