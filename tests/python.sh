#!/bin/sh
# Tests the Python package of clients/python as it is installed: from its wheel, on both stores.
#
# usage: tests/python.sh [long]
#
# The oldest Python that the package supports runs the tests on one store, and the newest on both. `long` adds those
# between. One that is missing is left out, but one must be there.
set -eu
cd "$(dirname "$0")/.."

# shellcheck source=tests/python-package.sh
. tests/python-package.sh

# The adapters are checked where their frameworks are installed, by python-adapters.sh.
tools="mypy==2.4.1 pyright==1.1.414 ruff==0.17.6"

# run_tests VERSION PYTHON STORE...: installs the wheel and runs the tests, away from the sources, on all stores at the
# same time.
run_tests() {
    version=$1
    # shellcheck disable=SC2086 # words
    locked make_venv "tests-$version" "$2" 'httpx>=0.27,<1' $test_tools
    venv=$work/tests-$version
    shift 2
    install_wheel "$venv"
    status=0
    for store; do
        test_store "$store" >"$work/$store.log" 2>&1 &
        eval "${store}_tests=\$!"
    done
    for store; do
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

# shellcheck disable=SC2086 # words
locked make_venv tools "$newest" $tools 'httpx>=0.27,<1' $test_tools
tools=$work/tools/bin

"$tools/ruff" check "$package"
"$tools/ruff" format --check --quiet "$package"
(cd "$package" && nice "$tools/mypy" --cache-dir "$work/mypy" src &&
    nice "$tools/pyright" --pythonpath "$tools/python")
build_wheel "$work/dist"

oldest=$(python_of 3.10)
if [ -n "$oldest" ] && [ "$newest_version" != 3.10 ]; then
    run_tests 3.10 "$oldest" memory
else
    echo 'python: Python 3.10 is not here'
fi
if [ "${1:-}" = long ]; then
    for version in 3.11 3.12; do
        between=$(python_of "$version")
        [ -z "$between" ] || [ "$version" = "$newest_version" ] || run_tests "$version" "$between" redis
    done
fi
run_tests "$newest_version" "$newest" memory redis
