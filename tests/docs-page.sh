#!/bin/sh
# Opens the page at /docs in a real browser that reaches no other host, and looks for every path of
# the API on it.
set -eu

cd "$(dirname "$0")/.."
# shellcheck source=tests/server.sh
. tests/server.sh

start_server memory

# Without the flags on background work the browser asks its maker's hosts at every start.
chromium --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run \
    --disable-background-networking --disable-component-update --disable-sync \
    --user-data-dir="$dir/profile" \
    --host-resolver-rules='MAP * ~NOTFOUND , EXCLUDE 127.0.0.1' \
    --virtual-time-budget=20000 --dump-dom "http://$address/docs/" \
    >"$dir/page" 2>"$dir/browser"

missing=0
for path in $("$program" openapi | sed -n 's/^    "\(\/[^"]*\)": {$/\1/p'); do
    grep -qF "data-path=\"$path\"" "$dir/page" || { echo "not on the page: $path" >&2; missing=1; }
done
found=$(grep -o 'data-path="[^"]*"' "$dir/page" | sort -u | wc -l)
if [ "$missing" != 0 ] || [ "$found" -lt 16 ]; then
    tail -5 "$dir/browser" >&2
    exit 1
fi
echo "The page shows $found paths."
