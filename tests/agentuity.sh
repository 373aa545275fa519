#!/bin/sh
# Runs an Agentuity app on threadkeep and Redis, with two published versions of Agentuity's runtime and two app
# processes per version. Sends HTTP requests to the app while Redis and replicas restart.
#
#   tests/agentuity.sh            checks everything
#   tests/agentuity.sh windows    only tests whose name contains "windows"
#
# Needs redis-server, Node.js 18 or later, and npm. tests/packages.sh installs the runtime and bun.
set -eu

cd "$(dirname "$0")/.."
# shellcheck source=tests/server.sh
. tests/server.sh

install_npm bun 1.4.5
bun=$npm/node_modules/bun/bin/bun.exe
# until bun's install script has run, bun.exe is only a placeholder
[ "$("$bun" --version 2>&1)" = 1.4.5 ] || locked "$npm.lock" node "$npm/node_modules/bun/install.js"

only=${1:-}
start_redis
[ -n "${THREADKEEP_BIN:-}" ] || cargo build --quiet --locked --workspace

# drive VERSION ENTRY: tests the app with this version of the runtime. ENTRY is the file that starts the app. The tests
# run in the background, because they mostly wait. Sets $driver to the process id of the tests.
drive() {
    install_npm @agentuity/runtime "$1" --omit=peer
    app=$dir/app-$1
    mkdir "$app"
    ln -s "$npm/node_modules" "$app/node_modules"
    cp tests/agentuity/*.ts "$app"
    node tests/agentuity/drive.mjs "$(
        cat <<END
{
    "version": "$1", "entry": "$2", "only": "$only", "directory": "$app", "bun": "$bun",
    "program": "$(realpath "$program")",
    "redis": "$dir/redis.sock", "logs": "$dir", "key": "$api_key", "prefix": "v$1"
}
END
    )" &
    driver=$!
    servers="$servers $driver"
}

drive 2.0.21 app.ts
first=$driver
drive 1.0.43 start_v1.ts
wait "$first"
wait "$driver"
