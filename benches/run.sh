#!/bin/sh
# Measures the CPU time of requests, and prints a table; see README.md in this directory.
#
#   benches/run.sh [SECONDS [WORKERS [OTHER PROGRAM]]] [--only PART OF A NAME]
#                                                        default: 10 s for each row, and one worker
#   benches/run.sh replicas [THREADS [SECONDS [BYTES]]]  three replicas, with and without read caches
#   benches/run.sh expiry [THREADS]                      many threads that expire at once
#   benches/run.sh memory [CONNECTIONS [THREADS]]        memory use, and time until ready
#   benches/run.sh responses [STREAMS [SECONDS]]         model responses
#
# Needs redis-server.
set -eu

cd "$(dirname "$0")/.."
# the build runs at low priority, the measurement does not
nice cargo bench --quiet --locked --bench requests --no-run
# raises the limit on open files, because each connection needs a descriptor at both ends
# shellcheck disable=SC3045 # dash, bash and busybox support it
ulimit -n "$(ulimit -H -n)"
exec cargo bench --quiet --locked --bench requests -- "$@"
