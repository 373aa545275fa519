#!/bin/sh
# Tests the adapters of the TypeScript package with their frameworks. Runs the frameworks' published suites, and the
# project's own tests with two processes and with faults. Prints the test counts of each suite. Also checks the package
# as a whole.
#
#   tests/typescript-adapters.sh [redis]        two replicas, on a private redis-server
#   tests/typescript-adapters.sh memory         the embedded store
#   tests/typescript-adapters.sh redis long     more writes in the tests with two processes
#   tests/typescript-adapters.sh redis PART...  only test files whose path contains one of the PARTs
#
# Needs Node.js 20.19 or later, and npm. tests/packages.sh installs the frameworks (600 MB).
set -eu

cd "$(dirname "$0")/.."
# shellcheck source=tests/server.sh
. tests/server.sh
# shellcheck source=tests/npm-package.sh
. tests/npm-package.sh

frameworks=$PWD/target/npm/threadkeep-frameworks
installed=$frameworks/node_modules/threadkeep
store=${1:-redis}
[ $# -eq 0 ] || shift
long=
if [ "${1:-}" = long ]; then
    long=1
    shift
fi

# Installs the package as a user would, next to the frameworks and the tests. Replaces an installed package only if the
# content has changed, because another run may be using it.
fill_package() {
    [ "$(cat "$installed/built-from" 2>/dev/null)" != "$built_from" ] || return 0
    rm -rf "$installed" "$frameworks/adapters"
    mkdir -p "$installed"
    "$frameworks/node_modules/.bin/tsc" -p "$PACKAGE/tests/frameworks"
    tar -xzf "$archive" -C "$installed" --strip-components 1
    cp -R "$PACKAGE/tests/adapters" "$frameworks/adapters"
    echo "$built_from" >"$installed/built-from"
}

pack_package
built_from=$(cat target/npm-package/built-from)
link_locked "$PACKAGE/tests/frameworks" "$frameworks"
cp "$PACKAGE/tests/frameworks/package.json" "$frameworks"
locked target/packages.lock fill_package

if [ $# -eq 0 ]; then
    "$frameworks/node_modules/.bin/publint" run --strict "$archive"
    "$frameworks/node_modules/.bin/attw" "$archive" --profile esm-only --quiet
    bytes=$(tar -xOzf "$archive" | wc -c)
    echo "the package unpacks to $bytes bytes"
    [ "$bytes" -lt 1500000 ]
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
