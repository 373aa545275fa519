#!/bin/sh
# Writes a release's files and checksums to target/release-files, and prints their sizes. Does not publish the files.
#
#   scripts/release.sh [OPTION...]
#   scripts/release.sh [--dir DIR] gather FROM...   merges the files of several platforms
#   scripts/release.sh version                      prints the version
#
#   --only PART...   writes only these: archive load wheel npm clients crate image chart
#   --program FILE   packs this program instead of building one with the profile dist
#   --load FILE      packs this load test instead of building it
#   --target TRIPLE  platform of FILE, if it is not this machine's
#   --dir DIR        writes to DIR, and removes an earlier run's files from it
#   --allow-dirty    packages the crates even if there are uncommitted changes
#   --verify         also builds the packaged crates
#
# The same checkout and program always produce the same bytes. Files in archives are dated SOURCE_DATE_EPOCH (default:
# the time of the last commit). Needs python3 (3.11). `clients` also needs npm, and `image` needs Docker with buildx.
set -eu

start_dir=$PWD
cd "$(dirname "$0")/.."
export PYTHONDONTWRITEBYTECODE=1
tools=scripts/release
parts='archive load wheel npm clients crate image chart'

usage() {
    sed -n 's/^#   //p' "$0" >&2
    exit 2
}

fail() {
    echo "release: $*" >&2
    exit 1
}

absolute() {
    case $1 in
    /*) echo "$1" ;;
    *) echo "$start_dir/$1" ;;
    esac
}

wants() {
    case " $only " in
    *" $1 "*) return 0 ;;
    esac
    return 1
}

# describe PACKAGE NAME: writes the files $bill (bill of materials) and $notices (licences) for the crates in PACKAGE.
describe() {
    bill=$work/$2-$version-$target.cdx.json
    python3 "$tools/bill.py" "$bill" "$version" "$target" "$1"
    mkdir -p "$work/$2"
    notices=$work/$2/LICENSES-THIRD-PARTY.txt
    python3 "$tools/notices.py" "$notices" "$target" "$bill"
}

# Sets $target. If a part needs the program, sets $program, $bill and $notices, and builds the program if necessary.
find_program() {
    [ -n "$target" ] || target=$(rustc -vV | sed -n 's/^host: //p')
    wants archive || wants wheel || wants npm || return 0
    if [ -z "$program" ]; then
        # the oldest macOS that runs the program
        MACOSX_DEPLOYMENT_TARGET=${MACOSX_DEPLOYMENT_TARGET:-11.0} \
            cargo build --profile dist --locked --bin threadkeep
        program=target/dist/threadkeep
    fi
    [ -x "$program" ] || fail "$program is not a program"
    describe threadkeep threadkeep
    cp "$bill" "$dir"
}

# write_tar NAME ROOT SOURCE...: see scripts/release/files.py
write_tar() {
    archive=$1
    shift
    python3 "$tools/files.py" "$dir/$archive" "$@"
}

write_archive() {
    name=threadkeep-$version-$target
    write_tar "$name.tar.gz" "$name" "threadkeep*=$program" "threadkeep.cdx.json=$bill" README.md=README.md \
        CHANGELOG.md=CHANGELOG.md LICENSE-APACHE=LICENSE-APACHE LICENSE-MIT=LICENSE-MIT "$(basename "$notices")=$notices" \
        threadkeep.toml=deploy/threadkeep.toml threadkeep.service=deploy/threadkeep.service
}

# Writes a separate archive for the load test, because most machines that run the server do not need the load test.
write_load() {
    if [ -z "$load" ]; then
        cargo build --profile dist --locked --package threadkeep-load
        load=target/dist/threadkeep-load
    fi
    name=threadkeep-load-$version-$target
    (
        describe threadkeep-load threadkeep-load
        write_tar "$name.tar.gz" "$name" "threadkeep-load*=$load" "threadkeep-load.cdx.json=$bill" README.md=load/README.md \
            LICENSE-APACHE=LICENSE-APACHE LICENSE-MIT=LICENSE-MIT "$(basename "$notices")=$notices"
    )
}

write_wheel() {
    python3 "$tools/wheel.py" "$dir" "$version" "$target" "$program" "$bill" "$notices"
}

write_npm() {
    python3 "$tools/npm.py" "$dir" "$version" "$target" "$program" "$notices"
}

write_clients() {
    [ -d clients/typescript/node_modules ] || (cd clients/typescript && npm ci --ignore-scripts)
    (cd clients/typescript && npm pack --loglevel=error --pack-destination "$dir") >/dev/null
    # without a build, npm packs only the sources
    python3 "$tools/exports.py" "$dir"/threadkeep-[0-9]*.tgz
    python3 -m venv "$work/venv"
    "$work/venv/bin/pip" install --quiet --disable-pip-version-check build==1.6.1 hatchling==1.33.0
    "$work/venv/bin/python" -m build --no-isolation --outdir "$dir" clients/python >"$work/build.log" 2>&1 ||
        fail "the Python client does not build: $(cat "$work/build.log")"
}

# Packages threadkeep and the workspace crates that it needs in a single cargo call, so that cargo finds these crates
# even though they are not in the registry yet. cargo packages dependencies first.
write_crate() {
    python3 "$tools/crates.py" >"$work/crates"
    # shellcheck disable=SC2046,SC2086 # they are words
    cargo package --quiet --locked $verify $allow_dirty $(sed 's/^/--package /' "$work/crates")
    while read -r crate; do
        cp "target/package/$crate-$version.crate" "$dir"
    done <"$work/crates"
}

# Builds the image for linux/amd64 and linux/arm64 by default. Docker emulates one of them, which takes hours.
write_image() {
    if ! docker buildx version >/dev/null 2>&1 || ! docker info >/dev/null 2>&1; then
        echo 'release: image: skipped, there is no Docker engine with buildx' >&2
        return
    fi
    builder=threadkeep-release-$$
    # the default builder cannot write this file type
    docker buildx create --name "$builder" --driver docker-container >/dev/null
    platforms=${IMAGE_PLATFORMS:-linux/amd64,linux/arm64}
    file=threadkeep-image-$version-$(echo "$platforms" | tr -d ' ' | tr '/,' -_).tar
    status=0
    docker buildx build --builder "$builder" --platform "$platforms" --target threadkeep --tag "threadkeep:$version" \
        --output "type=oci,dest=$dir/$file" . || status=$?
    docker buildx rm "$builder" >/dev/null
    [ "$status" = 0 ] || fail 'the image does not build'
}

write_chart() {
    for stated in version appVersion; do
        grep -qx "$stated: \"\\{0,1\\}$version\"\\{0,1\\}" deploy/helm/threadkeep/Chart.yaml ||
            fail "the $stated of deploy/helm/threadkeep/Chart.yaml is not $version"
    done
    # threadkeep-$version.tgz is the JavaScript package
    write_tar "threadkeep-chart-$version.tgz" threadkeep deploy/helm/threadkeep
}

sums() {
    if command -v sha256sum >/dev/null; then sha256sum "$@"; else shasum -a 256 "$@"; fi
}

finish() {
    cd "$dir"
    rm -f SHA256SUMS
    # the image may have been skipped
    [ -n "$(ls -A)" ] || return 0
    # shellcheck disable=SC2035 # no name begins with a dash
    sums * >"$work/SHA256SUMS"
    cp "$work/SHA256SUMS" .
    wc -c ./* | sed -n 's/^ *\([0-9]*\) \.\/\(.*\)/\1 \2/p' | while read -r bytes name; do
        printf '%10s KiB  %s\n' $(((bytes + 1023) / 1024)) "$name"
    done
}

# gather FROM...: copies the files from all FROM directories to $dir. If several directories contain the same file, such
# as the npm launcher, keeps the last copy.
gather() {
    for from in "$@"; do
        from=$(absolute "$from")
        (cd "$from" && sums -c SHA256SUMS >/dev/null) || fail "$from is damaged"
        cp "$from"/* "$dir"
    done
    finish
}

version=$(sed -n '/^\[workspace.package\]/,/^$/s/^version = "\(.*\)"/\1/p' Cargo.toml)
only='' program='' load='' target='' dir=$PWD/target/release-files allow_dirty='' verify=--no-verify command=''
while [ $# -gt 0 ]; do
    case $1 in
    --only)
        while [ $# -gt 1 ] && [ "${2#--}" = "$2" ]; do
            case " $parts " in
            *" $2 "*) only="$only $2" ;;
            *) fail "unknown part $2. Parts: $parts" ;;
            esac
            shift
        done
        [ -n "$only" ] || usage
        ;;
    --program | --load | --target | --dir)
        [ $# -gt 1 ] || usage
        case $1 in
        --program) program=$(absolute "$2") ;;
        --load) load=$(absolute "$2") ;;
        --target) target=$2 ;;
        --dir) dir=$(absolute "$2") ;;
        esac
        shift
        ;;
    --allow-dirty) allow_dirty=--allow-dirty ;;
    --verify) verify='' ;;
    version)
        echo "$version"
        exit
        ;;
    gather)
        command=gather
        shift
        break
        ;;
    *) usage ;;
    esac
    shift
done
: "${only:=$parts}"
[ -z "$target" ] || [ -n "$program$load" ] || fail '--target requires --program or --load'

python3 -c 'import tomllib' 2>/dev/null || fail 'Python 3.11 or later is missing'
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export SOURCE_DATE_EPOCH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
if [ -d "$dir" ] && [ -n "$(ls -A "$dir")" ]; then
    [ -e "$dir/SHA256SUMS" ] || fail "$dir has other files than those of a release"
    rm -rf "$dir"
fi
mkdir -p "$dir"
# marks the directory as output of this script, so that a later run can delete it even if this run is interrupted
: >"$dir/SHA256SUMS"
if [ "$command" = gather ]; then
    gather "$@"
    exit
fi
find_program
for part in $parts; do
    ! wants "$part" || "write_$part"
done
finish
