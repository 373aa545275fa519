#!/bin/sh
# Makes a signing key and an api key as files `signing` and `api` in a directory, unless they are
# there. They are readable by their owner alone, appear whole or not at all, and are printed nowhere.
#
#   make-keys.sh [DIRECTORY]    by default /keys, a volume of docker-compose.yml
set -eu
umask 077

cd "${1:-/keys}"
for use in signing api; do
    if [ -s "$use" ]; then
        echo "the $use keys are there"
        continue
    fi
    # of an earlier run that was cut off
    rm -f ".$use.new"
    threadkeep keygen --name first >".$use.new"
    sync ".$use.new"
    # the name appears when the content is on disk
    mv ".$use.new" "$use"
    sync .
    echo "the $use keys are made"
done
