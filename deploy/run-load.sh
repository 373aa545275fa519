#!/bin/sh
# Runs the load test in its container: run-load.sh [ARGUMENT...]
#
# Starts as root, with only the capability to change users. Reads the API key as the owner of the keys, then continues
# as the owner of the report directory, so that reports belong to the host user. LOAD_KEYS (default: /keys) is the
# directory that contains the file `api`. LOAD_REPORT is the directory for reports.
set -eu

keys=${LOAD_KEYS:-/keys}
as() {
    owner=$(stat -c '%u %g' "$1")
    shift
    exec setpriv --reuid="${owner% *}" --regid="${owner#* }" --clear-groups "$@"
}

LOAD_API_KEY=$(as "$keys" cat "$keys/api")
# the file is `name:secret,...`; take the first key
LOAD_API_KEY=${LOAD_API_KEY%%,*}
export LOAD_API_KEY="${LOAD_API_KEY#*:}"
as "$LOAD_REPORT" threadkeep-load "$@"
