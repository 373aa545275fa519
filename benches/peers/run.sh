#!/bin/sh
# Measures the CPU time of the same work in threadkeep and in common alternatives, which all use the same Redis. Writes
# RESULTS.md and peers.svg to this directory; see README.md.
#
#   benches/peers/run.sh [SECONDS [ROUNDS]]    default: 3 s for each result, and 3 rounds
#
# Needs redis-server, python3 with venv, npm with any version of Node, and either Webdis or a Debian system.
# Installs everything else below target/peers.
set -eu

cd "$(dirname "$0")/../.."
installed=$PWD/target/peers

# needs_install DIRECTORY FILE: succeeds if FILE has changed since the last installation.
needs_install() {
    ! cmp -s "$2" "$installed/$1/$(basename "$2")"
}

install_express() {
    if needs_install express benches/peers/express/package.json; then
        rm -rf "$installed/express"
        mkdir -p "$installed/express.new"
        cp benches/peers/express/package.json "$installed/express.new"
        npm install --prefix "$installed/express.new" --no-package-lock --no-audit --no-fund \
            --loglevel=error
        mv "$installed/express.new" "$installed/express"
    fi
    cp benches/peers/express/server.js "$installed/express"
}

install_fastapi() {
    if needs_install fastapi benches/peers/fastapi/requirements.txt; then
        rm -rf "$installed/fastapi"
        python3 -m venv "$installed/fastapi"
        "$installed/fastapi/bin/pip" install --quiet --disable-pip-version-check \
            --requirement benches/peers/fastapi/requirements.txt
        cp benches/peers/fastapi/requirements.txt "$installed/fastapi"
    fi
    cp benches/peers/fastapi/server.py "$installed/fastapi"
}

# Uses an installed Webdis. If there is none, downloads and unpacks Debian's package, without starting its service.
install_webdis() {
    [ ! -e "$installed/webdis/version" ] || return 0
    rm -rf "$installed/webdis"
    mkdir -p "$installed/webdis"
    if command -v webdis >/dev/null; then
        ln -s "$(command -v webdis)" "$installed/webdis/webdis"
        version=$(dpkg-query --show --showformat='${Version}' webdis 2>/dev/null || echo 'of this machine')
    else
        (
            cd "$installed/webdis"
            apt-get -qq download webdis libb64-0d libevent-2.1-7 libhiredis0.14 libjansson4
            for package in *.deb; do
                dpkg-deb --extract "$package" files
            done
            library=$(dirname "$PWD"/files/usr/lib/*/libhiredis.so.*)
            cat >webdis <<END
#!/bin/sh
LD_LIBRARY_PATH=$library exec $PWD/files/usr/bin/webdis "\$@"
END
            chmod +x webdis
        )
        version=$(dpkg-deb --field "$installed"/webdis/webdis_*.deb Version)
    fi
    echo "$version" >"$installed/webdis/version"
}

mkdir -p "$installed"
install_express
install_fastapi
install_webdis

# builds run at low priority, measurements do not
nice cargo build --quiet --locked --profile dist
cd benches/peers/rust
nice cargo bench --quiet --locked --target-dir "$installed/cargo" --bench peers --no-run
exec cargo bench --quiet --locked --target-dir "$installed/cargo" --bench peers -- \
    "$installed/../dist/threadkeep" "$installed" .. "${1:-3}" "${2:-3}"
