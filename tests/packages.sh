# Installs packages that scripts need. Other test scripts source this file from the directory of the project.
#
# shellcheck shell=sh

# locked COMMAND...: while no other script has one locked, since several may want the same package.
locked() {
    mkdir -p target
    (
        flock 9
        "$@"
    ) 9>target/packages.lock
}

# install_python PACKAGE VERSION: into the virtual environment $venv, below target/.
install_python() {
    venv=$PWD/target/$1
    also_install_python "$@"
}

# also_install_python PACKAGE VERSION: into the same virtual environment.
also_install_python() {
    locked fill_venv "$@"
}

fill_venv() {
    if ! "$venv/bin/pip" show "$1" 2>/dev/null | grep -qxF "Version: $2"; then
        python3 -m venv "$venv"
        "$venv/bin/pip" install --quiet "$1==$2"
    fi
}

# install_npm PACKAGE VERSION [OPTION...]: into $npm, a directory of its own below target/. Programs of
# packages that want to be run at the installation are not, whatever the npm of this machine thinks.
install_npm() {
    npm=$PWD/target/npm/$1-$2
    locked fill_npm "$@"
}

fill_npm() {
    if ! [ -e "$npm/installed" ]; then
        rm -rf "$npm"
        mkdir -p "$npm"
        package=$1@$2
        shift 2
        npm install --prefix "$npm" --no-save --no-audit --no-fund --loglevel=error --ignore-scripts \
            "$@" "$package"
        touch "$npm/installed"
    fi
}
