#!/bin/sh
# Tests the adapters of the TypeScript package with the frameworks that they are for: the published suites of these, and
# suites of our own with two processes and with faults. Prints a line with the counts of each suite.
#
#   tests/typescript-adapters.sh                the embedded store
#   tests/typescript-adapters.sh redis          two replicas over a redis-server that it starts
#   tests/typescript-adapters.sh redis PART...  only test files whose path has one of these in it
#
# Needs node (20.19 or later) and npm; the frameworks (600 MB) are installed below target/.
set -eu

cd "$(dirname "$0")/.."
# shellcheck source=tests/server.sh
. tests/server.sh

package=clients/typescript
frameworks=$PWD/target/npm/threadkeep-frameworks
installed=$frameworks/node_modules/threadkeep

fill_frameworks() {
    if ! cmp -s $package/tests/frameworks/package-lock.json "$frameworks/installed.json"; then
        mkdir -p "$frameworks"
        cp $package/tests/frameworks/package*.json "$frameworks"
        npm ci --prefix "$frameworks" --ignore-scripts --no-audit --no-fund --loglevel=error
        cp $package/tests/frameworks/package-lock.json "$frameworks/installed.json"
    fi
}

# The package as a user has it, next to the frameworks, and the tests next to both.
fill_package() {
    rm -rf "$installed" "$frameworks/adapters"
    mkdir -p "$installed"
    "$frameworks/node_modules/.bin/tsc" -p $package/tsconfig.adapters.json --outDir "$installed/dist"
    cp -R $package/package.json $package/docs "$installed"
    cp -R $package/tests/adapters "$frameworks/adapters"
}

locked fill_frameworks
locked fill_package

store=${1:-memory}
[ $# -eq 0 ] || shift
start_server "$store"
if [ "$store" = redis ]; then
    start_replica
else
    replica_address=$address
fi

env ADAPTERS_STORE="$store" \
    ADAPTERS_SERVERS="http://$address,http://$replica_address" \
    ADAPTERS_API_KEY="$api_key" \
    NODE_NO_WARNINGS=1 NO_COLOR=1 \
    "$frameworks/node_modules/.bin/vitest" run --root "$frameworks/adapters" "$@"
check_server
