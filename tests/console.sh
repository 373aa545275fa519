#!/bin/sh
# Rebuilds the console, compares the result with src/app/console/dist, and tests the console in Debian's Chromium.
#
#   tests/console.sh [redis]        with a redis-server
#   tests/console.sh memory         with the embedded store
#   tests/console.sh long           with both stores, in every combination of window size and theme
#   tests/console.sh STORE NAME...  only console/tests/NAME.test.ts
#
# Set THREADKEEP_BIN to test a program other than target/debug/threadkeep, and CHROMIUM to use a browser other than
# Debian's Chromium. Screenshots of all pages are saved in target/console/screenshots.
set -eu
cd "$(dirname "$0")/.."

stores=${1:-redis}
case $stores in
memory | redis) ;;
long) stores='memory redis' ;;
*)
    echo 'usage: tests/console.sh [memory | redis | long] [NAME...]' >&2
    exit 2
    ;;
esac
[ "${1:-}" != long ] || export LONG=1
[ $# -eq 0 ] || shift

# shellcheck source=tests/packages.sh
. tests/packages.sh

[ -n "${THREADKEEP_BIN:-}" ] || cargo build --quiet --locked --workspace
THREADKEEP_BIN=$(realpath "${THREADKEEP_BIN:-target/debug/threadkeep}")
work=$PWD/target/console
SCREENSHOTS=$work/screenshots
export THREADKEEP_BIN SCREENSHOTS

link_locked console
mkdir -p "$work"
(cd console && npm run --silent check && npm run --silent build -- --logLevel warn --outDir "$work/dist" --emptyOutDir)
if ! diff -rq "$work/dist" src/app/console/dist; then
    echo 'src/app/console/dist is not what console/ builds: cd console && npm run build' >&2
    exit 1
fi

if [ $# -eq 0 ]; then
    # start the slowest files first; if they started last, they would run alone at the end
    set -- hostile lifetimes looks thread
    for file in console/tests/*.test.ts; do
        name=$(basename "$file" .test.ts)
        case $name in
        hostile | lifetimes | looks | thread) ;;
        *) set -- "$@" "$name" ;;
        esac
    done
fi
rm -rf "$work/tests"
# shellcheck disable=SC2046 # words
console/node_modules/.bin/esbuild $(printf 'console/tests/%s.test.ts ' "$@") console/tests/support/run.ts \
    --bundle --packages=external --platform=node --format=esm --target=es2022 --log-level=warning \
    --outdir="$work/tests" --outbase=console/tests
ln -sfn "$PWD/console/node_modules" "$work/node_modules"
echo '{"private":true,"type":"module"}' >"$work/package.json"
for store in $stores; do
    echo "console: $* on $store"
    mkdir -p "$SCREENSHOTS/$store"
    # shellcheck disable=SC2046 # words
    (cd "$work" && STORE=$store nice node tests/support/run.js $(printf 'tests/%s.test.js ' "$@"))
done
