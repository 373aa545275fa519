#!/bin/sh
# Builds the console again and compares it with the files in src/app/console/dist, then tests it in Debian's chromium over
# both stores.
#
# usage: tests/console.sh [NAME...]: only console/tests/NAME.test.ts
#
# THREADKEEP_BIN names another program than target/debug/threadkeep, CHROMIUM another browser, and STORES one of the
# stores. Screenshots of each page are in target/console/screenshots afterwards.
set -eu
cd "$(dirname "$0")/.."

# shellcheck source=tests/packages.sh
. tests/packages.sh

[ -n "${THREADKEEP_BIN:-}" ] || cargo build --quiet
THREADKEEP_BIN=$(realpath "${THREADKEEP_BIN:-target/debug/threadkeep}")
work=$PWD/target/console
SCREENSHOTS=$work/screenshots
export THREADKEEP_BIN SCREENSHOTS

# the packages as the lock file names them, without their scripts
install_console() {
    if ! cmp -s console/package-lock.json console/node_modules/installed; then
        npm ci --prefix console --no-audit --no-fund --loglevel=error --ignore-scripts
        cp console/package-lock.json console/node_modules/installed
    fi
}

locked install_console
mkdir -p "$work"
(cd console && npm run --silent check && npm run --silent build -- --logLevel warn --outDir "$work/dist" --emptyOutDir)
if ! diff -rq "$work/dist" src/app/console/dist; then
    echo 'src/app/console/dist is not what console/ builds: cd console && npm run build' >&2
    exit 1
fi

names=${*:-$(for file in console/tests/*.test.ts; do basename "$file" .test.ts; done)}
rm -rf "$work/tests"
# shellcheck disable=SC2046 # words
console/node_modules/.bin/esbuild $(for name in $names; do echo "console/tests/$name.test.ts"; done) \
    --bundle --packages=external --platform=node --format=esm --target=es2022 --log-level=warning \
    --outdir="$work/tests" --outbase=console/tests
ln -sfn "$PWD/console/node_modules" "$work/node_modules"
echo '{"private":true,"type":"module"}' >"$work/package.json"
for store in ${STORES:-memory redis}; do
    echo "console: $(echo "$names" | tr '\n' ' ')on $store"
    mkdir -p "$SCREENSHOTS/$store"
    # shellcheck disable=SC2046 # words
    (cd "$work" && STORE=$store nice node --test --test-concurrency=2 --test-timeout=600000 --test-reporter=spec \
        $(for name in $names; do echo "tests/$name.test.js"; done))
done
