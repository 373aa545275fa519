#!/bin/sh
# Runs what the documents show, block by block and in their order: the shell of README.md and docs/.
#
#   tests/documents.sh [memory|redis]
#
# Needs bash and python3. tests/python.sh runs the Python that they show.
set -eu

cd "$(dirname "$0")/.."
# shellcheck source=tests/server.sh
. tests/server.sh

start_server "${1:-redis}"
# shellcheck disable=SC2154 # set by start_server
python3 tests/documents.py "http://$address" "$api_key"
check_server
