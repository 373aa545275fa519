#!/bin/sh
# Creates the files `signing` and `api`, each with one key, unless they exist. Usage: make-keys.sh [DIRECTORY] (default:
# /keys). Only the owner can read the files. The script never prints a key, and never leaves an incomplete file behind.
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
    # rename only after the flush, so that the name never refers to an incomplete file
    mv ".$use.new" "$use"
    sync .
    echo "the $use keys are made"
done
