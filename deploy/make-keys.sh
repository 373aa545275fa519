#!/bin/sh
# Creates the files `signing` and `api`, each with one key, unless they exist: make-keys.sh [DIRECTORY], by default /keys.
# Only their owner can read them. The script prints no key, and each file appears complete or not at all.
set -eu
umask 077

cd "${1:-/keys}"
for use in signing api; do
    if [ -s "$use" ]; then
        echo "the $use keys are there"
        continue
    fi
    # left by an interrupted run
    rm -f ".$use.new"
    threadkeep keygen --name first >".$use.new"
    sync ".$use.new"
    # flush before the rename, so that the name never has an incomplete file
    mv ".$use.new" "$use"
    sync .
    echo "the $use keys are made"
done
