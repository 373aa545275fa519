#!/bin/sh
# Tests the adapters in the Python package's wheel with their frameworks. Runs the frameworks' published suites and the
# project's own tests. Prints the test counts of each suite.
#
#   tests/python-adapters.sh [redis]        the newest supported version of each framework, with a redis-server
#   tests/python-adapters.sh memory         the newest versions, with the embedded store
#   tests/python-adapters.sh long           the newest and oldest supported versions, with both stores
#   tests/python-adapters.sh STORE NAME...  only the frameworks in the folders clients/python/tests/adapters/NAME
#
# Each folder contains the tests, the tested versions of the framework (newest.txt, oldest.txt), and suite.sh if the
# framework publishes a suite.
set -eu
cd "$(dirname "$0")/.."

stores=${1:-redis} ages=newest
case $stores in
memory | redis) ;;
long) stores='memory redis' ages='newest oldest' ;;
*)
    echo 'usage: tests/python-adapters.sh [memory | redis | long] [FRAMEWORK...]' >&2
    exit 2
    ;;
esac
[ $# -eq 0 ] || shift

# shellcheck source=tests/python-package.sh
. tests/python-package.sh

if [ $# -eq 0 ]; then
    for folder in "$package"/tests/adapters/*/; do
        set -- "$@" "$(basename "$folder")"
    done
fi

# test_store FRAMEWORK AGE STORE: runs the project's own tests, then the suite that the framework publishes, if any.
test_store() {
    run=$work/adapters-$1-$3
    rm -rf "$run"
    mkdir "$run"
    cp -r "$package/tests" "$package/pyproject.toml" "$run"
    cd "$run"
    echo "python adapters: $1, $2 version, on $3"
    STORE=$3 nice "$venv/bin/python" -m pytest -q -p no:cacheprovider "tests/adapters/$1"
    suite=$run/tests/adapters/$1/suite.sh
    if [ "$2" = newest ] && [ -e "$suite" ]; then
        STORE=$3 PYTHON=$venv/bin/python DOWNLOADS=$packages/sdists sh -eu "$suite"
    fi
}

# test_framework FRAMEWORK AGE: tests a framework on all stores in parallel.
test_framework() {
    # shellcheck disable=SC2046 # words
    install_wheel "$1-$2" "$newest" $(cat "$package/tests/adapters/$1/$2.txt")
    status=0
    for store in $stores; do
        # run in the background, where `set -e` applies; the shell ignores `set -e` in a function call before `||`
        test_store "$1" "$2" "$store" >"$work/adapters-$1-$store.log" 2>&1 &
        eval "${store}_tests=\$!"
    done
    for store in $stores; do
        eval "wait \"\$${store}_tests\"" || status=1
        cat "$work/adapters-$1-$store.log"
    done
    if [ "$2" = newest ]; then
        (cd "$package" && nice "$mypy" --cache-dir "$work/mypy-$1" --python-executable "$venv/bin/python" \
            "src/threadkeep/$1"/*.py) || status=1
    fi
    return $status
}

python=$newest
install_python mypy==2.4.1
mypy=$venv/bin/mypy
build_wheel
for framework; do
    for age in $ages; do
        test_framework "$framework" "$age"
    done
done
