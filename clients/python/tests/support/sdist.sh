# Downloads the tests in a framework's sdist. An adapter's suite.sh sources this file.
#
# shellcheck shell=sh

# unpack_sdist PACKAGE VERSION: unpacks into the current directory, and sets $sdist to the unpacked folder.
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
