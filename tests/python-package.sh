# Builds and installs the Python package. Other test scripts source this file from the project's root directory.
#
# Finds Python versions on the PATH (python3.10, ...) and those installed with pyenv. Set THREADKEEP_BIN to test a
# program other than target/debug/threadkeep.
#
# shellcheck shell=sh

# shellcheck source=tests/packages.sh
. tests/packages.sh

[ -n "${THREADKEEP_BIN:-}" ] || cargo build --quiet --locked --workspace
THREADKEEP_BIN=$(realpath "${THREADKEEP_BIN:-target/debug/threadkeep}")
REPOSITORY=$PWD
export THREADKEEP_BIN REPOSITORY
package=$PWD/clients/python
work=$PWD/target/python
mkdir -p "$work"

# python_of VERSION: prints the path of Python VERSION if it is installed. Runs Python as a check, because pyenv puts
# shims for missing versions on the PATH.
python_of() {
    if "python$1" -c '' 2>/dev/null; then
        command -v "python$1"
        return
    fi
    for candidate in "${PYENV_ROOT:-$HOME/.pyenv}"/versions/"$1".*/bin/python; do
        [ ! -x "$candidate" ] || echo "$candidate"
    done | tail -n 1
}

# build_wheel: builds the sdist and the wheel if the sources have changed. Sets $wheel. Builds the wheel from the sdist,
# to check that the sdist is complete.
build_wheel() {
    python=$newest
    install_python build==1.6.1 hatchling==1.33.0
    locked "$work/wheel.lock" fill_wheel
    wheel=$(echo "$work"/dist/*.whl)
}

fill_wheel() {
    sources=$(find "$package" \( -name __pycache__ -o -name '.*_cache' \) -prune -o -type f -exec sha256sum {} + | sort | sha256sum)
    [ "$(cat "$work/dist/built-from" 2>/dev/null)" != "$sources" ] || return 0
    rm -rf "$work/dist"
    "$venv/bin/python" -m build --no-isolation --outdir "$work/dist" "$package" >"$work/build.log" 2>&1 || {
        cat "$work/build.log" >&2
        exit 1
    }
    echo "$sources" >"$work/dist/built-from"
}

# install_wheel NAME PYTHON REQUIREMENT...: installs the wheel into a virtual environment of this checkout, which also
# uses the packages of the cached environment. Sets $venv.
install_wheel() {
    own=$work/$1
    python=$2
    shift 2
    install_python 'httpx>=0.27,<1' pytest==9.2.0 pytest-asyncio==1.5.0 "$@"
    rm -rf "$own"
    "$python" -m venv --without-pip "$own"
    site='import sysconfig; print(sysconfig.get_path("purelib"))'
    "$venv/bin/python" -c "$site" >"$("$own/bin/python" -c "$site")/cached.pth"
    "$venv/bin/pip" --python "$own/bin/python" install --quiet --disable-pip-version-check --no-deps "$wheel"
    venv=$own
}

# install_checkout: runs the pip commands in the README if the sources have changed.
install_checkout() {
    sources=$(cd "$package" && find src pyproject.toml README.md -name __pycache__ -prune -o -type f -exec sha256sum {} + | sort)
    cached "$(name_of pip threadkeep "$sources" "$("$newest" -VV)")" fill_checkout
    "$entry/bin/python" -c 'from threadkeep.langgraph import ThreadkeepSaver'
}

fill_checkout() {
    "$newest" -m venv "$entry"
    nice "$entry/bin/pip" install --quiet --disable-pip-version-check "$package"
    "$entry/bin/python" -c 'import threadkeep'
    nice "$entry/bin/pip" install --quiet --disable-pip-version-check "${package}[langgraph]"
}

newest=
for newest_version in 3.13 3.12 3.11 3.10; do
    newest=$(python_of "$newest_version")
    [ -z "$newest" ] || break
done
[ -n "$newest" ] || {
    echo "python: no Python from 3.10 to 3.13 is installed" >&2
    exit 1
}
