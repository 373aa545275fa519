#!/bin/sh
# Tests the Python package in clients/python, installed from its wheel.
#
#   tests/python.sh [redis]   the newest Python, with a redis-server
#   tests/python.sh memory    the newest Python, with the embedded store
#   tests/python.sh long      all supported versions of Python, with both stores
#
# Skips Python versions that are not installed. Fails if no version is installed.
set -eu
cd "$(dirname "$0")/.."

stores=${1:-redis}
case $stores in
memory | redis) ;;
long) stores='memory redis' ;;
*)
    echo 'usage: tests/python.sh [memory | redis | long]' >&2
    exit 2
    ;;
esac

# shellcheck source=tests/python-package.sh
. tests/python-package.sh

# run_tests VERSION PYTHON: installs the wheel, and runs the tests outside the source tree on all stores in parallel.
run_tests() {
    install_wheel "tests-$1" "$2"
    status=0
    for store in $stores; do
        test_store "$store" >"$work/$store.log" 2>&1 &
        eval "${store}_tests=\$!"
    done
    for store in $stores; do
        eval "wait \"\$${store}_tests\"" || status=1
        cat "$work/$store.log"
    done
    return $status
}

# test_store STORE
test_store() {
    run=$work/run-$1
    rm -rf "$run"
    mkdir "$run"
    cp -r "$package/tests" "$package/pyproject.toml" "$run"
    cd "$run"
    echo "python: $("$venv/bin/python" --version) on $1"
    STORE=$1 nice "$venv/bin/python" -m pytest -q -p no:cacheprovider --ignore tests/adapters
}

# python-adapters.sh checks the adapters, because it installs their frameworks.
check_sources() {
    "$tools/ruff" check "$package"
    "$tools/ruff" format --check --quiet "$package"
    cd "$package"
    nice "$tools/mypy" --cache-dir "$work/mypy" src
    nice "$tools/pyright" --pythonpath "$tools/python"
}

python=$newest
install_python mypy==2.4.1 pyright==1.1.414 ruff==0.17.6 'httpx>=0.27,<1' pytest==9.2.0 pytest-asyncio==1.5.0
tools=$venv/bin
# run the checks in parallel with the tests, which mostly wait
{
    install_checkout
    check_sources
} >"$work/sources.log" 2>&1 &
sources=$!
build_wheel
run_tests "$newest_version" "$newest"
if [ "${1:-}" = long ]; then
    for version in 3.10 3.11 3.12; do
        older=$(python_of "$version")
        if [ -z "$older" ]; then
            echo "python: Python $version is not installed"
        elif [ "$version" != "$newest_version" ]; then
            run_tests "$version" "$older"
        fi
    done
fi
status=0
wait "$sources" || status=$?
cat "$work/sources.log"
exit "$status"
