#!/bin/sh
# Verifies deploy/threadkeep.service with systemd-analyze. Replaces the program's path, because the path must exist.
set -eu

cd "$(dirname "$0")/.."
command -v systemd-analyze >/dev/null || {
    echo 'systemd-analyze is not installed'
    exit 77
}
mkdir -p target
unit=target/threadkeep.service
sed "s|^ExecStart=.*|ExecStart=$(command -v true)|" deploy/threadkeep.service >"$unit"
systemd-analyze verify "$unit"
