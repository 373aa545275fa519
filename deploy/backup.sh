#!/bin/sh
# Writes a snapshot of a local or remote Redis to a file.
#
#   deploy/backup.sh FILE [OPTION...]
#
# Accepts the options of redis-cli, such as -u redis://user@host:6379, --tls or --cacert FILE. Set REDISCLI_AUTH to the
# password. In a cluster, run the script for each master. FILE must not exist yet, and is created only if the snapshot
# is complete. The snapshot contains all writes made before the script started.
set -eu

[ $# -ge 1 ] || {
    sed -n 's/^#   //p' "$0" >&2
    exit 2
}
file=$1
shift

fail() {
    echo "$0: $*" >&2
    exit 1
}

[ ! -e "$file" ] || fail "$file exists"
umask 077
part=$file.part
trap 'rm -f "$part"' EXIT
trap 'exit 130' INT TERM

redis-cli "$@" --no-auth-warning --rdb "$part" >&2
redis-check-rdb "$part" >/dev/null || fail "the snapshot is broken"
mv "$part" "$file"
