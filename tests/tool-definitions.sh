#!/bin/sh
# Checks tool definitions and results of tool calls against the types of OpenAI's and Anthropic's libraries. Then a
# scripted model uses these libraries in conversations, through two replicas on one Redis.
#
# Needs python3 with venv. tests/packages.sh installs the libraries. Sends nothing to other machines.
set -eu

cd "$(dirname "$0")/.."
# shellcheck source=tests/server.sh
. tests/server.sh

install_python openai==3.51.0 anthropic==2.10.0 jsonschema==4.26.0
start_server redis
start_replica

"$venv/bin/python" tests/tool_definitions.py "http://$address" "$api_key"
# shellcheck disable=SC2154 # set by start_replica
"$venv/bin/python" tests/scripted_model.py "$api_key" "http://$address" "http://$replica_address"
check_server
