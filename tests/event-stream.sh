#!/bin/sh
# Reads event streams with a third-party client library. A proxy repeatedly cuts the connection in the middle of an
# event. The library must reconnect without missing an event.
#
#   tests/event-stream.sh [redis]  with a private redis-server
#   tests/event-stream.sh memory   with the embedded store
#
# Needs python3 with venv. tests/packages.sh installs the library.
set -eu

cd "$(dirname "$0")/.."
# shellcheck source=tests/server.sh
. tests/server.sh

install_python requests-sse==0.5.3
start_server "${1:-redis}"

"$venv/bin/python" tests/event_stream.py "$address" "$api_key"
check_server
