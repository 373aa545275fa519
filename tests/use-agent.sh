#!/bin/sh
# Stores threads with the unmodified transport and hook of @inngest/use-agent. Two processes create threads
# concurrently. The checks of lists, messages, titles and deletions use only the published package.
#
#   tests/use-agent.sh [redis]  with two replicas, on a private redis-server; one replica is killed
#   tests/use-agent.sh memory   with the embedded store
#
# Needs Node.js 20 or later, and npm. tests/packages.sh installs the packages.
set -eu

cd "$(dirname "$0")/.."
# shellcheck source=tests/server.sh
. tests/server.sh

install_npm @inngest/use-agent 0.4.0 react@19.3.1 react-dom@19.3.1 uuid@14.0.3 jsdom@26.1.0
jwt_secret=a-shared-secret-of-at-least-32-bytes
printf %s "$jwt_secret" >"$dir/jwt"
set -- "${1:-redis}" THREADKEEP_OWNER=jwt THREADKEEP_IDENTITY_JWT_KEY_FILE="$dir/jwt"
start_server "$@"
first=$server first_address=$address
if [ "$1" = redis ]; then
    shift
    run_server replica THREADKEEP_REDIS_URL="unix://$dir/redis.sock" "$@"
    server=$pid
fi

# drive PART ADDRESS: runs one part of the checks.
drive() {
    node tests/use_agent.mjs "$1" "http://$2" "$npm" "$api_key" "$jwt_secret"
}

# run two processes in parallel, each with its own replica if there are two replicas
drive create-even "$first_address" &
even=$!
drive create-odd "$listening" &
odd=$!
wait "$even"
wait "$odd"
drive lists "$first_address"
drive lists "$listening"
if [ "$listening" != "$first_address" ]; then
    kill -KILL "$first"
    wait "$first" 2>/dev/null || true
    drive lists "$listening"
fi
drive threads "$listening"
drive users "$listening"
drive hook "$listening"
check_server
