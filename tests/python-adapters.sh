#!/bin/sh
# Tests the adapters of the Python package, from its wheel, with the frameworks that they are for: the published suites of
# these, and suites of our own. Prints a line with the counts of each suite.
#
#   tests/python-adapters.sh                      the embedded store
#   tests/python-adapters.sh redis                a redis-server
#   tests/python-adapters.sh redis long           also with the oldest supported version of each framework
#   tests/python-adapters.sh redis FRAMEWORK...   only these: names of folders in clients/python/tests/adapters
#
# A folder has the tests, the versions of the framework (newest.txt, oldest.txt), and suite.sh, if one is published.
set -eu
cd "$(dirname "$0")/.."
# shellcheck source=tests/python-package.sh
. tests/python-package.sh

STORE=${1:-memory}
export STORE
[ $# -eq 0 ] || shift
long=
if [ "${1:-}" = long ]; then
    long=1
    shift
fi
if [ $# -eq 0 ]; then
    for folder in "$package"/tests/adapters/*/; do
        set -- "$@" "$(basename "$folder")"
    done
fi

# in_venv FRAMEWORK AGE: sets $venv to one with the framework and the package.
in_venv() {
    requirements=$package/tests/adapters/$1/$2.txt
    # shellcheck disable=SC2046,SC2086 # words
    locked make_venv "$1-$2" "$newest" 'httpx>=0.27,<1' $test_tools $(cat "$requirements")
    venv=$work/$1-$2
    install_wheel "$venv"
}

# test_framework FRAMEWORK AGE
test_framework() {
    in_venv "$1" "$2"
    run=$work/adapters-$STORE
    rm -rf "$run"
    mkdir "$run"
    cp -r "$package/tests" "$package/pyproject.toml" "$run"
    if [ "$2" = newest ]; then
        (cd "$package" && nice "$work/types/bin/mypy" --cache-dir "$work/mypy-$1" --python-executable "$venv/bin/python" "src/threadkeep/$1"/*.py)
    fi
    echo "python adapters: $1, $2 versions, on $STORE"
    (cd "$run" && nice "$venv/bin/python" -m pytest -q -p no:cacheprovider "tests/adapters/$1")
    suite=$run/tests/adapters/$1/suite.sh
    if [ "$2" = newest ] && [ -e "$suite" ]; then
        (cd "$run" && PYTHON=$venv/bin/python DOWNLOADS=$work/downloads nice sh -eu "$suite")
    fi
}

locked make_venv types "$newest" mypy==2.4.1
build_wheel "$work/dist-$STORE"
for framework; do
    test_framework "$framework" newest
    [ -z "$long" ] || test_framework "$framework" oldest
done
