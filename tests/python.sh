#!/bin/sh
# Tests the Python package of clients/python as it is installed: from its wheel, on both stores.
#
# usage: tests/python.sh [long]
#
# The oldest Python that the package supports runs the tests on one store, and the newest on both. `long` adds those between.
# They are looked for on the PATH (python3.10, ...) and with pyenv. One that is missing is left out, but one must be there. THREADKEEP_BIN names another program than target/debug/threadkeep.
set -eu
cd "$(dirname "$0")/.."

# shellcheck source=tests/packages.sh
. tests/packages.sh

[ -n "${THREADKEEP_BIN:-}" ] || cargo build --quiet
THREADKEEP_BIN=$(realpath "${THREADKEEP_BIN:-target/debug/threadkeep}")
REPOSITORY=$PWD
export THREADKEEP_BIN REPOSITORY
package=$PWD/clients/python
work=$PWD/target/python
tools="build==1.6.1 mypy==2.4.1 pyright==1.1.414 ruff==0.17.6"
test_tools="pytest==9.2.0 pytest-asyncio==1.5.0"

# python_of VERSION: the path of that Python, if it is here. The shims of pyenv are on the PATH whatever it has.
python_of() {
    if "python$1" -c '' 2>/dev/null; then
        command -v "python$1"
        return
    fi
    for candidate in "${PYENV_ROOT:-$HOME/.pyenv}"/versions/"$1".*/bin/python; do
        [ ! -x "$candidate" ] || echo "$candidate"
    done | tail -n 1
}

# make_venv NAME PYTHON PACKAGE...: once, below target/.
make_venv() {
    venv=$work/$1
    python=$2
    shift 2
    if [ "$(cat "$venv/installed" 2>/dev/null)" != "$*" ]; then
        rm -rf "$venv"
        "$python" -m venv "$venv"
        "$venv/bin/pip" install --quiet --disable-pip-version-check "$@"
        echo "$*" >"$venv/installed"
    fi
}

# run_tests VERSION PYTHON STORE...: installs the wheel and runs the tests, away from the sources.
run_tests() {
    version=$1
    # shellcheck disable=SC2086 # words
    locked make_venv "tests-$version" "$2" 'httpx>=0.27,<1' $test_tools
    venv=$work/tests-$version
    shift 2
    "$venv/bin/pip" install --quiet --disable-pip-version-check --no-deps --force-reinstall "$wheel"
    rm -rf "$work/run"
    mkdir "$work/run"
    cp -r "$package/tests" "$package/pyproject.toml" "$work/run"
    for store in "$@"; do
        echo "python: $("$venv/bin/python" --version) on $store"
        (cd "$work/run" && STORE=$store nice "$venv/bin/python" -m pytest -q -p no:cacheprovider)
    done
}

newest=
for version in 3.13 3.12 3.11 3.10; do
    newest=$(python_of "$version")
    [ -z "$newest" ] || break
done
[ -n "$newest" ] || {
    echo "python: no Python of 3.10 to 3.13 is here" >&2
    exit 1
}
newest_version=$version
mkdir -p "$work"
# shellcheck disable=SC2086 # words
locked make_venv tools "$newest" $tools 'httpx>=0.27,<1' $test_tools
tools=$work/tools/bin

"$tools/ruff" check "$package"
"$tools/ruff" format --check --quiet "$package"
(cd "$package" && nice "$tools/mypy" --cache-dir "$work/mypy" src &&
    nice "$tools/pyright" --pythonpath "$tools/python")
rm -rf "$work/dist"
"$tools/python" -m build --outdir "$work/dist" "$package" >"$work/build.log" 2>&1 || {
    cat "$work/build.log" >&2
    exit 1
}
wheel=$(echo "$work"/dist/*.whl) # of the sdist, so that has everything that a build needs

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
