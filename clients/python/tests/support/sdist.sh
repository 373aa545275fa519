# Downloads a framework's sdist, which contains its tests. The suite.sh of an adapter sources this file.
#
# shellcheck shell=sh

# unpack_sdist PACKAGE VERSION: unpacks the sdist into the current directory. Sets $sdist to the unpacked folder.
unpack_sdist() {
    sdist=$(echo "$1" | tr - _)-$2
    if [ ! -e "$DOWNLOADS/$sdist.tar.gz" ]; then
        mkdir -p "$DOWNLOADS"
        "$PYTHON" -m pip download --quiet --disable-pip-version-check --no-deps --no-binary :all: \
            --dest "$DOWNLOADS/$$" "$1==$2"
        mv "$DOWNLOADS/$$/$sdist.tar.gz" "$DOWNLOADS"
        rmdir "$DOWNLOADS/$$"
    fi
    tar -xzf "$DOWNLOADS/$sdist.tar.gz"
}
