#!/bin/sh
# Uses unmodified Python packages to read all kinds of answers from the scripted upstream, which replaces a model
# provider in tests. The answers include complete and streamed text, tool calls, errors, and answers that fail midway.
# The package openai reads chat completions and responses; anthropic reads messages.
#
# Needs python3 with venv; tests/packages.sh installs the packages.
set -eu

cd "$(dirname "$0")/.."
# shellcheck source=tests/packages.sh
. tests/packages.sh

# the newest openai version that tests/openai.sh tests
install_python openai==3.57.0 anthropic==2.14.0
[ -n "${THREADKEEP_BIN:-}" ] || cargo build --quiet --locked --package threadkeep-scripted-upstream
for api in chat responses; do
    "$venv/bin/python" tests/upstream/check_$api.py target/debug/scripted-upstream
done
"$venv/bin/python" tests/upstream/check_messages.py target/debug/scripted-upstream
