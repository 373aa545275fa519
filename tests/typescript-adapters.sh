#!/bin/sh
# Tests the adapters of the TypeScript package with the frameworks that they are for: the published suites of these, and
# suites of our own with two processes and with faults. Prints a line with the counts of each suite. Also checks the
# package as a whole.
#
#   tests/typescript-adapters.sh [redis]        two replicas over a redis-server that it starts
#   tests/typescript-adapters.sh memory         the embedded store
#   tests/typescript-adapters.sh redis long     with more writes in the tests of two processes
#   tests/typescript-adapters.sh redis PART...  only test files whose path has one of these in it
#
# Needs node (20.19 or later) and npm; tests/packages.sh installs the frameworks (600 MB).
set -eu

cd "$(dirname "$0")/.."
# shellcheck source=tests/server.sh
. tests/server.sh

package=clients/typescript
frameworks=$PWD/target/npm/threadkeep-frameworks
installed=$frameworks/node_modules/threadkeep
store=${1:-redis}
[ $# -eq 0 ] || shift
long=
if [ "${1:-}" = long ]; then
    long=1
    shift
fi

# The package as a user has it, next to the frameworks, and the tests next to both. Another run may use the same one, so it
# is replaced only if anything has changed.
fill_package() {
    built_from=$(find $package \( -name node_modules -o -name dist \) -prune -o -type f -exec sha256sum {} + | sort | sha256sum)
    [ "$(cat "$installed/built-from" 2>/dev/null)" != "$built_from" ] || return 0
    rm -rf "$installed" "$frameworks/adapters"
    mkdir -p "$installed"
    tsc="$frameworks/node_modules/.bin/tsc -p $package/tsconfig.all.json --outDir $installed/dist"
    $tsc
    # the declarations have the comments; the code need not
    $tsc --noCheck --removeComments --declaration false --declarationMap false
    for file in package.json README.md CHANGELOG.md LICENSE-MIT LICENSE-APACHE docs src; do
        cp -R "$package/$file" "$installed"
    done
    cp -R $package/tests/adapters "$frameworks/adapters"
    echo "$built_from" >"$installed/built-from"
}

link_locked $package/tests/frameworks "$frameworks"
cp $package/tests/frameworks/package.json "$frameworks"
locked target/packages.lock fill_package

if [ $# -eq 0 ]; then
    # as published
    archive=$dir/$(cd "$installed" && npm pack --silent --pack-destination "$dir")
    "$frameworks/node_modules/.bin/publint" run --strict "$archive"
    "$frameworks/node_modules/.bin/attw" "$archive" --profile esm-only --quiet
    bytes=$(tar -xOzf "$archive" | wc -c)
    echo "the package unpacks to $bytes bytes"
    [ "$bytes" -lt 650000 ]
fi

start_server "$store"
if [ "$store" = redis ]; then
    start_replica
else
    replica_address=$address
fi

# shellcheck disable=SC2154 # set by tests/server.sh
env ADAPTERS_STORE="$store" ADAPTERS_LONG="$long" \
    ADAPTERS_SERVERS="http://$address,http://$replica_address" \
    ADAPTERS_API_KEY="$api_key" \
    NODE_NO_WARNINGS=1 NO_COLOR=1 \
    "$frameworks/node_modules/.bin/vitest" run --root "$frameworks/adapters" "$@"
check_server
