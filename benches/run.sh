#!/bin/sh
# Measures the CPU that requests cost, and prints a table; see README.md beside this file.
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
# the build may wait for others of this machine, the measurement may not
nice cargo bench --quiet --locked --bench requests --no-run
# two ends of each connection, and a few
# shellcheck disable=SC3045 # dash, bash and busybox have it
ulimit -n "$(ulimit -H -n)"
exec cargo bench --quiet --locked --bench requests -- "$@"
