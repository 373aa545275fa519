#!/bin/sh
# Has the official clients of the Model Context Protocol, in Python and in TypeScript, list and call
# every tool and read the resources, each in scopes of its own.
#
#   tests/mcp.sh [redis]  over two replicas in turn, on a redis-server that it starts
#   tests/mcp.sh memory   over the embedded store
#
# Needs python3 with venv, node (18 or later) and npm; tests/packages.sh installs the clients.
set -eu

cd "$(dirname "$0")/.."
# shellcheck source=tests/server.sh
. tests/server.sh

install_python mcp==2.3.0
install_npm @modelcontextprotocol/sdk 1.32.2
start_server "${1:-redis}"
if [ "${1:-redis}" = redis ]; then
    start_replica
else
    replica_address=$address
fi

"$venv/bin/python" tests/mcp_client.py "$api_key" "http://$address" "http://$replica_address"
NODE_PATH=$npm/node_modules node tests/mcp_client.mjs \
    "$api_key" "http://$address" "http://$replica_address"
check_server
