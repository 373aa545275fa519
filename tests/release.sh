#!/bin/sh
# Checks the files that scripts/release.sh creates. Installs the wheel and the npm packages into empty folders without
# network access, and starts the program from each folder. Two runs must create identical files.
#
# Set THREADKEEP_BIN to test a program other than target/debug/threadkeep. Needs npm, python3 with venv, and binutils.
set -eu

cd "$(dirname "$0")/.."
# shellcheck source=tests/packages.sh
. tests/packages.sh

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
trap 'exit 130' INT TERM
[ -n "${THREADKEEP_BIN:-}" ] || cargo build --quiet --locked --workspace
# strip the program, because its debug information would take a minute to compress
strip -o "$dir/threadkeep" "${THREADKEEP_BIN:-target/debug/threadkeep}"
# a small stand-in for the program, for the checks that do not start it
cp "$(command -v env)" "$dir/small"

release() {
    scripts/release.sh "$@" >"$dir/release.log" || {
        cat "$dir/release.log" >&2
        exit 1
    }
}

fail() {
    echo "$0: $*" >&2
    exit 1
}

release --only archive wheel npm chart --program "$dir/threadkeep" --dir "$dir/files"
cat "$dir/release.log"
(cd "$dir/files" && sha256sum --quiet --check SHA256SUMS)
[ "$(find "$dir/files" -type f | wc -l)" = "$(($(wc -l <"$dir/files/SHA256SUMS") + 1))" ] ||
    fail 'SHA256SUMS does not list all files'

mkdir "$dir/archive"
tar -xzf "$dir"/files/threadkeep-*.tar.gz -C "$dir/archive"
python3 -m venv "$dir/venv"
"$dir/venv/bin/pip" install --quiet --disable-pip-version-check --no-index "$dir"/files/threadkeep_server-*.whl
mkdir "$dir/node"
echo '{"private":true}' >"$dir/node/package.json"
npm install --prefix "$dir/node" --offline --cache "$dir/npm-cache" --no-audit --no-fund --loglevel=error \
    "$dir"/files/threadkeep-server-[0-9]*.tgz "$dir"/files/threadkeep-server-*-*-*.tgz >"$dir/npm.log"
install_python 'cyclonedx-python-lib[json-validation]==11.12.0'
"$venv/bin/python" tests/release.py "$dir" "$dir/threadkeep"

small() {
    release --only archive load wheel npm chart --program "$dir/small" --load "$dir/small" "$@"
}
small --dir "$dir/first"
(
    umask 077
    TZ=Asia/Tokyo small --dir "$dir/second"
)
diff -r "$dir/first" "$dir/second"

# Creates the files for a second platform. `gather` merges them with the files for this platform.
case $(uname -m) in
x86_64) other=aarch64 npm_cpu=arm64 ;;
*) other=x86_64 npm_cpu=x64 ;;
esac
release --only wheel npm --program "$dir/small" --target "$other-unknown-linux-gnu" --dir "$dir/other"
scripts/release.sh --dir "$dir/all" gather "$dir/other" "$dir/first" >/dev/null
for file in "threadkeep-*-$other-unknown-linux-gnu.cdx.json" "threadkeep_server-*_$other.whl" \
    "threadkeep-server-linux-$npm_cpu-*.tgz" 'threadkeep-[0-9]*.tar.gz' 'threadkeep-load-*.tar.gz' 'threadkeep-chart-*.tgz'; do
    [ "$(find "$dir/all" -name "$file" | wc -l)" = 1 ] || fail "gather did not produce exactly one $file"
done
(cd "$dir/all" && sha256sum --quiet --check SHA256SUMS)
echo damaged >>"$dir/other/$(basename "$dir"/other/*.whl)"
! scripts/release.sh --dir "$dir/all" gather "$dir/other" 2>"$dir/error" || fail 'gather accepted a damaged file'
grep -q 'is damaged' "$dir/error" || fail 'gather did not name the damaged folder'
