#!/bin/sh
# Has the unmodified Python packages openai and openai-agents keep their conversations in threadkeep: all routes, pages
# in both directions, errors, links that break after a request, and two processes that add at once.
#
#   tests/openai.sh          over the embedded store
#   tests/openai.sh redis    over two replicas, on a redis-server that it starts
#
# Needs python3 with venv; the packages are installed below target/.
set -eu

cd "$(dirname "$0")/.."
# shellcheck source=tests/server.sh
. tests/server.sh

install_python openai-agents 0.24.0
also_install_python openai "${OPENAI_VERSION:-3.54.0}"
start_server "${1:-memory}"
if [ "${1:-memory}" = redis ]; then
    start_replica
else
    replica_address=$address
fi

# drive PART ARGUMENT...: runs that part of the checks.
drive() {
    "$venv/bin/python" tests/openai_client.py "$@"
}

export OPENAI_API_KEY="$api_key"
drive all "http://$address/openai/v1"
conversation=$(drive create "http://$address/openai/v1")
# two processes, each at its own replica if there are two
drive add "http://$address/openai/v1" "$conversation" even &
even=$!
drive add "http://$replica_address/openai/v1" "$conversation" odd &
odd=$!
wait "$even"
wait "$odd"
drive added "http://$replica_address/openai/v1" "$conversation"
check_server
