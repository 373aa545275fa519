#!/bin/sh
# Measures the CPU time of requests, and prints a table; see README.md in this directory.
#
#   benches/run.sh [SECONDS [WORKERS [OTHER PROGRAM]]] [--only PART OF A NAME]
#                                                        10 s for each row and one worker by default
#   benches/run.sh replicas [THREADS [SECONDS [BYTES]]]  three replicas, without read caches and with them
#   benches/run.sh expiry [THREADS]                      many ends at once
#   benches/run.sh memory [CONNECTIONS [THREADS]]        memory, and time to ready
#   benches/run.sh responses [STREAMS [SECONDS]]         model responses
#
# Needs redis-server.
set -eu

cd "$(dirname "$0")/.."
# the build runs at low priority, the measurement does not
nice cargo bench --quiet --locked --bench requests --no-run
# both ends of each connection need a descriptor
# shellcheck disable=SC3045 # dash, bash and busybox have it
ulimit -n "$(ulimit -H -n)"
exec cargo bench --quiet --locked --bench requests -- "$@"
