#!/bin/sh
# Opens /docs in a browser that cannot reach other hosts, and checks that the page shows every path of the API. Then
# sends a message with the page in docs/browser.md.
#
#   tests/docs-page.sh [redis]  with a private redis-server
#   tests/docs-page.sh memory   with the embedded store
#
# Needs Node.js, npm and python3. Set CHROMIUM to use a browser other than Debian's Chromium.
set -eu

cd "$(dirname "$0")/.."
# shellcheck source=tests/server.sh
. tests/server.sh

install_locked console
# serve the page of docs/browser.md from its own origin
mkdir "$dir/pages"
python3 -u -m http.server --bind 127.0.0.1 --directory "$dir/pages" 0 >"$dir/pages.log" 2>&1 &
servers="$servers $!"
until_it grep -q 'port [0-9]' "$dir/pages.log"
pages=http://localhost:$(sed -n 's/.* port \([0-9]*\) .*/\1/p' "$dir/pages.log")
start_server "${1:-redis}" THREADKEEP_CORS_ORIGINS="$pages"

"$program" openapi >"$dir/openapi.json"
# shellcheck disable=SC2016 # Markdown backticks
{
    sed -n '/^```html$/,/^```$/{/^```/d;p}' docs/browser.md | sed "s|localhost:8080|localhost:${address##*:}|"
    echo '<script>document.forms[0].text.value = "Hello"; document.forms[0].requestSubmit();</script>'
} >"$dir/pages/chat.html"
NODE_PATH=$npm/node_modules node tests/docs_page.mjs "http://$address/docs/" "$dir/openapi.json" "$pages/chat.html"
check_server
