#!/bin/sh
# Measures the CPU that requests cost, and prints a table; see README.md beside this file.
#
#   benches/run.sh [SECONDS [WORKERS]]    10 s for each row and one worker by default
#
# Needs redis-server.
set -eu

cd "$(dirname "$0")/.."
# the build may wait for others of this machine, the measurement may not
nice cargo bench --quiet --locked --bench requests --no-run
exec cargo bench --quiet --locked --bench requests -- "$@"
