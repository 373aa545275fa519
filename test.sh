#!/bin/sh
# Runs the checks, and prints how long each one takes.
#
#   ./test.sh           the checks that CI runs
#   ./test.sh quick     the checks that fail most often; run them after each change
#   ./test.sh long      also runs checks that rarely fail, and tests other package versions; run nightly
#   ./test.sh NAME...   the tests whose path contains a NAME
#
# On a Debian machine with Rust, first installs missing programs, as root or with sudo, without starting their services.
# Caches packages and compiled dependencies in ~/.cache/threadkeep.
set -eu

cd "$(dirname "$0")"
# Debian installs haproxy and dnsmasq in the sbin directories
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin

case ${1-} in
-*)
    sed -n 's/^#   //p' "$0" >&2
    exit 2
    ;;
esac

fail() {
    printf '\ntest.sh: %s\n' "$*" >&2
    exit 1
}

missing() {
    while read -r program package; do
        command -v "$program" >/dev/null || echo "$package"
    done <<'END'
cc build-essential
chromium chromium
curl curl
debootstrap debootstrap
dnsmasq dnsmasq-base
docker-compose docker-compose
dockerd docker.io
git git
haproxy haproxy
node nodejs
npm npm
openssl openssl
prometheus prometheus
python3 python3
redis-server redis-server
shellcheck shellcheck
END
    python3 -c 'import ensurepip, venv' 2>/dev/null || echo python3-venv
}

as_root() {
    if [ "$(id -u)" = 0 ]; then
        "$@"
    else
        command -v sudo >/dev/null || fail "not root and without sudo: cannot run $*"
        sudo "$@"
    fi
}

# Debian starts a service when its package is installed, unless this program prevents it.
policy=/usr/sbin/policy-rc.d

# shellcheck disable=SC2317 # called by the trap too
allow_services() {
    as_root rm -f "$policy"
}

install() {
    packages=$(missing | tr '\n' ' ')
    [ -n "$packages" ] || return 0
    command -v apt-get >/dev/null || fail "missing, and there is no apt-get: $packages"
    printf '\n==> Installing %s\n' "$packages"
    ours=
    if [ ! -e "$policy" ]; then
        ours=yes
        trap allow_services EXIT
        trap 'exit 130' INT TERM
        printf '#!/bin/sh\nexit 101\n' | as_root tee "$policy" >/dev/null
        as_root chmod +x "$policy"
    fi
    as_root apt-get -qq -o Acquire::Retries=3 update
    # shellcheck disable=SC2086 # they are words
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Acquire::Retries=3 -o Dpkg::Use-Pty=0 \
        install --yes --no-install-recommends $packages </dev/null
    if [ -n "$ours" ]; then
        allow_services
        trap - EXIT INT TERM
    fi
    # prevents the services from starting with the machine
    for service in redis-server haproxy prometheus docker.io; do
        case " $packages" in
        *" $service "*) [ ! -d /run/systemd/system ] || as_root systemctl --quiet disable "${service%.io}" ;;
        esac
    done
    packages=$(missing | tr '\n' ' ')
    [ -z "$packages" ] || fail "still missing after the installation: $packages"
}

for program in cargo rustfmt cargo-clippy; do
    command -v "$program" >/dev/null || fail "$program is missing: install Rust, https://rustup.rs"
done
install
python3 tests/dependencies.py get

case ${1-} in
'' | quick | long)
    # all suites use the program that Cargo builds here
    export THREADKEEP_BIN="$PWD/target/debug/threadkeep"
    python3 tests/run.py "${1:-common}"
    # a full disk does not fail the tests
    [ "${1-}" = quick ] || python3 tests/dependencies.py keep || true
    ;;
*)
    # shellcheck source=tests/chosen.sh
    . tests/chosen.sh
    test_chosen "$@"
    ;;
esac
