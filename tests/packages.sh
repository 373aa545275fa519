# Installs packages for test scripts in $XDG_CACHE_HOME/threadkeep/packages (below ~/.cache by default). All checkouts
# of a user share this cache. Other test scripts source this file from the project's root directory.
#
# shellcheck shell=sh

packages=${XDG_CACHE_HOME:-$HOME/.cache}/threadkeep/packages

# locked FILE COMMAND...: runs the command while holding an exclusive lock on FILE.
locked() {
    lock_file=$1
    shift
    mkdir -p "$(dirname "$lock_file")"
    (
        flock 9
        "$@"
    ) 9>"$lock_file"
}

# cached NAME COMMAND...: sets $entry to the cache directory NAME. Runs the command to fill the directory if it is
# incomplete.
cached() {
    entry=$packages/$1
    shift
    [ -e "$entry/installed" ] || locked "$entry.lock" fill "$@"
}

# Creates the file `installed` last, so that a directory without this file is recognized as incomplete. Sends the
# installer's output to standard error, because a test may compare its standard output.
fill() {
    [ ! -e "$entry/installed" ] || return 0
    rm -rf "$entry"
    mkdir "$entry"
    "$@" >&2
    touch "$entry/installed"
}

# name_of KIND PACKAGE TEXT...: prints the name of a cache entry, which depends on all arguments.
name_of() {
    kind=$1-$(printf %s "$2" | sed 's/[=<>].*//' | tr -c 'A-Za-z0-9.\n' _)
    shift
    echo "$kind-$(printf '%s\n' "$(uname -m)" "$@" | sha256sum | cut -c 1-16)"
}

# install_python REQUIREMENT...: sets $venv to a virtual environment of $python (default: python3) with the packages.
install_python() {
    python=${python:-python3}
    interpreter=$("$python" -c 'import sys; print(sys.version, sys.executable)')
    # in a subshell, because `cached` also sets $entry
    uv=$(cached "$(name_of uv "$uv_version" "$interpreter")" fill_uv && echo "$entry/bin/uv")
    cached "$(name_of python "$@" "$interpreter")" fill_venv "$@"
    # shellcheck disable=SC2034 # for the script that sources this file
    venv=$entry
}

# Uses uv, because pip takes up to 30 times as long. uv does not compile modules, so Python must save the bytecode on
# the first import, which PYTHONDONTWRITEBYTECODE would prevent.
uv_version=0.13.9
unset PYTHONDONTWRITEBYTECODE

fill_uv() {
    "$python" -m venv "$entry"
    "$entry/bin/pip" install --quiet --disable-pip-version-check "uv==$uv_version"
}

fill_venv() {
    "$python" -m venv "$entry"
    "$uv" pip install --quiet --python "$entry/bin/python" "$@"
}

# install_npm PACKAGE VERSION [OPTION...]: sets $npm to a directory with node_modules. Never runs install scripts of
# packages, even if npm's configuration allows them.
install_npm() {
    cached "$(name_of npm "$@")" fill_npm "$@"
    npm=$entry
}

fill_npm() {
    package=$1@$2
    shift 2
    npm install --prefix "$entry" --no-save --no-audit --no-fund --loglevel=error --ignore-scripts "$@" "$package"
}

# install_locked DIRECTORY: installs the packages of DIRECTORY/package-lock.json without install scripts. Sets $npm.
install_locked() {
    manifest=$(node -p 'const { dependencies, devDependencies, name } = JSON.parse(fs.readFileSync(process.argv[1]));
        JSON.stringify({ name, dependencies, devDependencies })' "$1/package.json")
    cached "$(name_of npm "$(basename "$1")" "$manifest" "$(cat "$1/package-lock.json")")" fill_locked "$1"
    npm=$entry
}

fill_locked() {
    cp "$1/package.json" "$1/package-lock.json" "$entry"
    npm ci --prefix "$entry" --no-audit --no-fund --loglevel=error --ignore-scripts
}

# link_locked DIRECTORY [TARGET]: installs the packages of DIRECTORY/package-lock.json into TARGET/node_modules
# (default: DIRECTORY/node_modules), as hard links if possible. `npm ci` in TARGET does not change the cache.
link_locked() {
    install_locked "$1"
    locked target/packages.lock fill_modules "${2:-$1}/node_modules"
}

fill_modules() {
    [ "$(cat "$1/installed" 2>/dev/null)" != "$npm" ] || return 0
    rm -rf "$1"
    mkdir -p "$(dirname "$1")"
    cp -al "$npm/node_modules" "$1" 2>/dev/null || {
        rm -rf "$1"
        cp -a "$npm/node_modules" "$1"
    }
    echo "$npm" >"$1/installed"
}
