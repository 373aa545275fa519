#!/bin/sh
# Verifies webhooks with a third-party Standard Webhooks library, including failed deliveries and changes to the secret.
#
#   tests/webhooks.sh [redis]  with a private redis-server
#   tests/webhooks.sh memory   with the embedded store
#
# Needs python3 with venv. tests/packages.sh installs the library.
set -eu

cd "$(dirname "$0")/.."
# shellcheck source=tests/server.sh
. tests/server.sh

install_python standardwebhooks==1.0.1
start_server "${1:-redis}" THREADKEEP_WEBHOOK_ALLOW_PRIVATE=true

"$venv/bin/python" tests/webhooks.py "http://$address" "$api_key"
check_server
