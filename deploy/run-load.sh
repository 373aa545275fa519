#!/bin/sh
# Starts the load test in its container, as root without other rights than to change users: it reads the
# API key as the owner of the keys, and continues as the owner of the directory of reports, so that the reports
# belong to the user that started it on the host.
#
#   run-load.sh [ARGUMENT...]    LOAD_KEYS (/keys) has the file `api`, LOAD_REPORT is the directory
set -eu

keys=${LOAD_KEYS:-/keys}
as() {
    owner=$(stat -c '%u %g' "$1")
    shift
    exec setpriv --reuid="${owner% *}" --regid="${owner#* }" --clear-groups "$@"
}

LOAD_API_KEY=$(as "$keys" cat "$keys/api")
# the file is `name:secret,...`, and the first key will do
LOAD_API_KEY=${LOAD_API_KEY%%,*}
export LOAD_API_KEY="${LOAD_API_KEY#*:}"
as "$LOAD_REPORT" threadkeep-load "$@"
