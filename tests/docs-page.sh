#!/bin/sh
# Opens the page at /docs in a real browser that reaches no other host, and looks for every path of the API on it.
# Then opens the page of the README, and sends a message with it.
set -eu

cd "$(dirname "$0")/.."
# shellcheck source=tests/server.sh
. tests/server.sh

# The page of the README comes from a server of its own.
pages=$(python3 -c 'import socket
with socket.create_server(("127.0.0.1", 0)) as probe:
    print(probe.getsockname()[1])')
start_server memory THREADKEEP_CORS_ORIGINS="http://localhost:$pages"

# open_page URL: prints the document as it is when its scripts have run. Without the flags on background work
# the browser asks its maker's hosts at every start.
open_page() {
    chromium --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run \
        --disable-background-networking --disable-component-update --disable-sync \
        --user-data-dir="$dir/profile" \
        --host-resolver-rules='MAP * ~NOTFOUND , EXCLUDE 127.0.0.1 , EXCLUDE localhost' \
        --virtual-time-budget=20000 --dump-dom "$1" 2>"$dir/browser"
}

# The groups are collapsed, in the order of use, and each opens by its link.
"$program" openapi >"$dir/openapi.json"
groups=$(python3 -c 'import json, sys
print(*(tag["name"] for tag in json.load(sys.stdin)["tags"]))' <"$dir/openapi.json")
open_page "http://$address/docs/" >"$dir/page"
grep -q '<title>threadkeep API</title>' "$dir/page" || { echo "the page has another title" >&2; exit 1; }
shown=$(grep -o 'id="operations-tag-[a-z]*"' "$dir/page" | sed 's/.*-\([a-z]*\)"/\1/' | tr '\n' ' ')
[ "$shown" = "$groups " ] || { echo "the groups are $shown" >&2; exit 1; }
! grep -q 'data-path="/' "$dir/page" || { echo "the groups are not collapsed" >&2; exit 1; }
for group in $groups; do
    open_page "http://$address/docs/#/$group"
done >"$dir/page"
missing=0
paths=$(sed -n 's/^ "\(\/[^"]*\)":{$/\1/p' "$dir/openapi.json")
for path in $paths; do
    grep -qF "data-path=\"$path\"" "$dir/page" || { echo "not on the page: $path" >&2; missing=1; }
done
found=$(grep -o 'data-path="[^"]*"' "$dir/page" | sort -u | wc -l)
if [ "$missing" != 0 ] || [ "$found" -lt 16 ]; then
    tail -5 "$dir/browser" >&2
    exit 1
fi
echo "The page shows $found paths."

mkdir "$dir/pages"
# shellcheck disable=SC2016 # they are backticks of Markdown
{
    sed -n '/^```html$/,/^```$/{/^```/d;p}' README.md | sed "s|localhost:8080|localhost:${address##*:}|"
    echo '<script>document.forms[0].text.value = "Hello"; document.forms[0].requestSubmit();</script>'
} >"$dir/pages/chat.html"
python3 -m http.server --bind 127.0.0.1 --directory "$dir/pages" "$pages" >"$dir/pages.log" 2>&1 &
servers="$servers $!"
until_it curl -sf "http://localhost:$pages/chat.html"
open_page "http://localhost:$pages/chat.html" >"$dir/page"
if ! grep -qF '{"messages":[{"role":"user","content":"Hello"}]}' "$dir/page"; then
    cat "$dir/page" >&2
    exit 1
fi
echo 'The page of the README shows what it has sent.'
