#!/bin/sh
# Tests the adapters of the Python package, from its wheel, with the frameworks that they are for: the published suites of
# these, and suites of our own, on the embedded store and on a redis-server at the same time. Prints a line with the counts
# of each suite.
#
#   tests/python-adapters.sh                the newest supported version of each framework
#   tests/python-adapters.sh long           the oldest one
#   tests/python-adapters.sh FRAMEWORK...   only these: names of folders in clients/python/tests/adapters
#
# A folder has the tests, the versions of the framework (newest.txt, oldest.txt), and suite.sh, if one is published.
set -eu
cd "$(dirname "$0")/.."
# shellcheck source=tests/python-package.sh
. tests/python-package.sh

age=newest
if [ "${1:-}" = long ]; then
    age=oldest
    shift
fi
if [ $# -eq 0 ]; then
    for folder in "$package"/tests/adapters/*/; do
        set -- "$@" "$(basename "$folder")"
    done
fi

# test_store FRAMEWORK STORE: the tests, then the published suite.
test_store() {
    run=$work/adapters-$2
    rm -rf "$run"
    mkdir "$run"
    cp -r "$package/tests" "$package/pyproject.toml" "$run"
    cd "$run"
    echo "python adapters: $1, $age version, on $2"
    STORE=$2 "$venv/bin/python" -m pytest -q -p no:cacheprovider "tests/adapters/$1"
    suite=$run/tests/adapters/$1/suite.sh
    if [ $age = newest ] && [ -e "$suite" ]; then
        STORE=$2 PYTHON=$venv/bin/python DOWNLOADS=$work/downloads-$2 sh -eu "$suite"
    fi
}

# test_framework FRAMEWORK: on both stores.
test_framework() {
    requirements=$package/tests/adapters/$1/$age.txt
    # shellcheck disable=SC2046,SC2086 # words
    locked make_venv "$1-$age" "$newest" 'httpx>=0.27,<1' $test_tools $(cat "$requirements")
    venv=$work/$1-$age
    install_wheel "$venv"
    log=$work/adapters-memory.log
    status=0
    # in the background, where a command that fails ends them
    test_store "$1" memory >"$log" 2>&1 &
    embedded=$!
    test_store "$1" redis &
    redis=$!
    wait "$redis" || status=1
    wait "$embedded" || status=1
    cat "$log"
    if [ $age = newest ]; then
        (cd "$package" && "$work/types/bin/mypy" --cache-dir "$work/mypy-$1" --python-executable "$venv/bin/python" \
            "src/threadkeep/$1"/*.py) || status=1
    fi
    return $status
}

locked make_venv types "$newest" mypy==2.4.1
build_wheel "$work/dist-adapters"
for framework; do
    test_framework "$framework"
done
