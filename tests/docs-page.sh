#!/bin/sh
# Opens the page at /docs in a real browser that reaches no other host, and looks for every path of
# the API on it. THREADKEEP_BIN names another program than target/debug/threadkeep.
set -eu

cd "$(dirname "$0")/.."
program=${THREADKEEP_BIN:-target/debug/threadkeep}
scratch=$(mktemp -d)
server=

# shellcheck disable=SC2317 # called by the trap
end() {
    [ -z "$server" ] || kill "$server" 2>/dev/null || true
    rm -rf "$scratch"
}
trap end EXIT

env -i PATH="$PATH" "$program" --listen 127.0.0.1:0 2>"$scratch/log" &
server=$!
address=
tries=0
while [ -z "$address" ]; do
    tries=$((tries + 1))
    [ "$tries" -le 100 ] || { cat "$scratch/log" >&2; echo 'the server does not start' >&2; exit 1; }
    sleep 0.1
    address=$(sed -n 's/.*"listening","address":"\([^"]*\)".*/\1/p' "$scratch/log")
done

# Without the flags on background work the browser asks its maker's hosts at every start.
chromium --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run \
    --disable-background-networking --disable-component-update --disable-sync \
    --user-data-dir="$scratch/profile" \
    --host-resolver-rules='MAP * ~NOTFOUND , EXCLUDE 127.0.0.1' \
    --virtual-time-budget=20000 --dump-dom "http://$address/docs/" \
    >"$scratch/page" 2>"$scratch/browser"

missing=0
for path in $("$program" openapi | sed -n 's/^    "\(\/[^"]*\)": {$/\1/p'); do
    grep -qF "data-path=\"$path\"" "$scratch/page" || { echo "not on the page: $path" >&2; missing=1; }
done
found=$(grep -o 'data-path="[^"]*"' "$scratch/page" | sort -u | wc -l)
if [ "$missing" != 0 ] || [ "$found" -lt 16 ]; then
    tail -5 "$scratch/browser" >&2
    exit 1
fi
echo "The page shows $found paths."
