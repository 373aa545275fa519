# Builds and installs the Python package. Other test scripts source this file from the directory of the project.
#
# Pythons are looked for on the PATH (python3.10, ...) and with pyenv. THREADKEEP_BIN names another program than
# target/debug/threadkeep.
#
# shellcheck shell=sh

# shellcheck source=tests/packages.sh
. tests/packages.sh

[ -n "${THREADKEEP_BIN:-}" ] || cargo build --quiet
THREADKEEP_BIN=$(realpath "${THREADKEEP_BIN:-target/debug/threadkeep}")
REPOSITORY=$PWD
export THREADKEEP_BIN REPOSITORY
package=$PWD/clients/python
work=$PWD/target/python
test_tools="pytest==9.2.0 pytest-asyncio==1.5.0"
mkdir -p "$work"

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

# build_wheel DIRECTORY: builds sdist and wheel there, and sets $wheel. The wheel is made of the sdist, so that has
# everything that a build needs.
build_wheel() {
    rm -rf "$1"
    locked make_venv build "$newest" build==1.6.1
    "$work/build/bin/python" -m build --outdir "$1" "$package" >"$work/build.log" 2>&1 || {
        cat "$work/build.log" >&2
        exit 1
    }
    wheel=$(echo "$1"/*.whl)
}

# install_wheel VENV
install_wheel() {
    "$1/bin/pip" install --quiet --disable-pip-version-check --no-deps --force-reinstall "$wheel"
}

newest=
for newest_version in 3.13 3.12 3.11 3.10; do
    newest=$(python_of "$newest_version")
    [ -z "$newest" ] || break
done
[ -n "$newest" ] || {
    echo "python: no Python of 3.10 to 3.13 is here" >&2
    exit 1
}
