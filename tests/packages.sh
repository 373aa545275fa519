# Packages of others that scripts need: read in by the scripts beside this one, from the directory of
# the project.
# One script at a time, since several want the same package.
# shellcheck shell=sh

mkdir -p target
lock=target/packages.lock

# install_python PACKAGE VERSION: into the virtual environment $venv, below target/.
install_python() {
    venv=$PWD/target/$1
    (
        flock 9
        if ! "$venv/bin/pip" show "$1" 2>/dev/null | grep -qxF "Version: $2"; then
            python3 -m venv "$venv"
            "$venv/bin/pip" install --quiet "$1==$2"
        fi
    ) 9>"$lock"
}

# also_install_python PACKAGE VERSION: into the same virtual environment.
also_install_python() {
    if ! "$venv/bin/pip" show "$1" 2>/dev/null | grep -qxF "Version: $2"; then
        "$venv/bin/pip" install --quiet "$1==$2"
    fi
}

# install_npm PACKAGE VERSION [OPTION...]: into $npm, a directory of its own below target/. Programs of
# packages that want to be run at the installation are not, whatever the npm of this machine thinks.
install_npm() {
    npm=$PWD/target/npm/$1-$2
    (
        flock 9
        if ! [ -e "$npm/installed" ]; then
            rm -rf "$npm"
            mkdir -p "$npm"
            package=$1@$2
            shift 2
            npm install --prefix "$npm" --no-save --no-audit --no-fund --loglevel=error \
                --ignore-scripts "$@" "$package"
            touch "$npm/installed"
        fi
    ) 9>"$lock"
}
