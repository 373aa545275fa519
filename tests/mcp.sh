#!/bin/sh
# Lists and calls every tool, and reads the resources, with the official Python and TypeScript clients of the Model
# Context Protocol. Each client uses its own scopes. Then runs the programs in docs/mcp.md.
#
#   tests/mcp.sh [redis]  with two replicas in turn, on a private redis-server
#   tests/mcp.sh memory   with the embedded store
#
# Needs python3 with venv, Node.js 18 or later, and npm. tests/packages.sh installs the clients.
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

# program LANGUAGE: prints the LANGUAGE program from docs/mcp.md, with this server's address and key
program() {
    sed -n "/^\`\`\`$1\$/,/^\`\`\`\$/p" docs/mcp.md | sed -e '/^```/d' \
        -e "s|http://127.0.0.1:8080|http://$address|" -e "s|a-secret-of-32-characters-or-more|$api_key|"
}

ln -s "$npm/node_modules" "$dir/node_modules"
program python >"$dir/notes.py"
program ts >"$dir/notes.mjs"
"$venv/bin/python" "$dir/notes.py" | grep Ada
node "$dir/notes.mjs" | grep Ada
echo 'docs/mcp.md: 2 programs'
check_server
