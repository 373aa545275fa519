# Builds the npm package. Other test scripts source this file from the project's root directory.
#
# shellcheck shell=sh

# shellcheck source=tests/packages.sh
. tests/packages.sh

PACKAGE=$PWD/clients/typescript
export PACKAGE

# pack_package: runs `npm pack` if a source file has changed. Sets $archive.
pack_package() {
    link_locked "$PACKAGE"
    locked target/npm-package/lock fill_archive
    # shellcheck disable=SC2034 # for the script that sources this file
    archive=$(echo "$PWD"/target/npm-package/*.tgz)
}

fill_archive() {
    sources=$(find "$PACKAGE" \( -name node_modules -o -name dist \) -prune -o -type f -exec sha256sum {} + | sort | sha256sum)
    [ "$(cat target/npm-package/built-from 2>/dev/null)" != "$sources" ] || return 0
    rm -f target/npm-package/*.tgz
    npm pack --silent --pack-destination target/npm-package "$PACKAGE" >/dev/null
    echo "$sources" >target/npm-package/built-from
}
