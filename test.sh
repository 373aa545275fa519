#!/bin/sh
# Runs the checks: test.sh. Or those that most often fail, in a few minutes from a warm build: test.sh quick. Or also
# those that hardly ever fail alone: test.sh long. Or the suites of clients alone: test.sh suites.
# On a Debian machine with Rust it first installs what is missing of what the checks need, as root or with
# sudo; it starts no service and changes nothing else of the machine.
set -eu

form=${1-}
case $form in
'' | quick | long | suites) ;;
*)
    echo 'usage: test.sh [quick | long | suites]' >&2
    exit 2
    ;;
esac

cd "$(dirname "$0")"
# where Debian keeps haproxy and dnsmasq
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
started=$(date +%s)
# a line for each check that did not fail
outcomes=$(mktemp)

fail() {
    printf '\ntest.sh: %s\n' "$*" >&2
    exit 1
}

# Runs a command as a check of that name. One that exits with 77 was skipped.
check() {
    name=$1
    shift
    printf '\n==> %s\n    %s\n' "$name" "$*"
    before=$(date +%s)
    status=0
    "$@" </dev/null || status=$?
    case $status in
    0)
        echo passed >>"$outcomes"
        printf '    passed in %s s\n' "$(($(date +%s) - before))"
        ;;
    77)
        echo skipped >>"$outcomes"
        printf '    SKIPPED\n'
        ;;
    *) fail "$name FAILED: $*" ;;
    esac
}

# Waits for a command in the background, and tells what it printed.
outcome_of() {
    status=0
    wait "$1" || status=$?
    cat "$2"
    return "$status"
}

# both LOG FIRST SECOND: runs two commands at once, and tells at the end what the first one printed. Fails if either fails.
# shellcheck disable=SC2086 # they are words
both() {
    log=$1
    $2 >"$log" 2>&1 &
    first=$!
    failed=0
    ($3) || failed=1
    outcome_of "$first" "$log" || failed=1
    return "$failed"
}

# Runs a script over both stores at once: each of the two hardly keeps one core busy.
over_each_store() {
    both "target/${1##*/}.memory.log" "over_the_embedded_store $1" "$1 redis"
}
over_the_embedded_store() {
    printf '    the embedded store:\n'
    "$1" memory
}

# Builds cargo-deny, once: no package has it. It is not optimized, as it has little to do.
install_cargo_deny() {
    env CARGO_PROFILE_DEV_DEBUG=0 cargo install --quiet --locked --debug --root target/tools \
        --target-dir target/tools/build cargo-deny@0.20.2
    rm -rf target/tools/build
}

# Shipped code has to keep to deny.toml; all built code has to come from crates.io.
dependencies() {
    deny=target/tools/bin/cargo-deny
    "$deny" --locked --exclude-dev check licenses bans || return 1
    "$deny" --locked --workspace check sources || return 1
    if curl -sfL -o /dev/null --max-time 20 https://github.com/RustSec/advisory-db; then
        "$deny" --locked --workspace check advisories
    else
        echo '    skipped: advisories, as github.com/RustSec/advisory-db cannot be reached'
    fi
}

# Holds the unit to systemd's own check, with a program that is there.
service_unit() {
    if ! command -v systemd-analyze >/dev/null; then
        echo '    there is no systemd-analyze here'
        return 77
    fi
    mkdir -p target
    unit=target/threadkeep.service
    sed "s|^ExecStart=.*|ExecStart=$(command -v true)|" deploy/threadkeep.service >"$unit"
    systemd-analyze verify "$unit"
}

# Names the packages of missing programs.
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

# Debian starts a service when its package is installed, unless this program says no.
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
        printf '#!/bin/sh\nexit 101\n' | as_root tee "$policy" >/dev/null
        as_root chmod +x "$policy"
    fi
    as_root apt-get -qq -o Acquire::Retries=3 update
    # shellcheck disable=SC2086 # they are words
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Acquire::Retries=3 -o Dpkg::Use-Pty=0 \
        install --yes --no-install-recommends $packages </dev/null
    if [ -n "$ours" ]; then
        allow_services
        trap - EXIT
    fi
    # nor is it to start with the machine
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

# Half of what a test takes is waiting, so there are twice as many at once as there are cores. Those that look at
# how long clients wait have the usual number: faults, budgets and hostile requests. The same names leave out and
# pick, so that each test is run whatever it is called.
at_once=$((2 * $(nproc)))
# Runs tests, THREADS at once. One that hangs fails the run; libtest has named it by then.
tests() {
    threads=$1
    shift
    RUST_TEST_THREADS=$threads timeout --kill-after=10 1500 cargo test --locked "$@"
}

# The program that the tests are run with, as it is shipped. The other crates would add features to its dependencies, such
# as clients that decompress by themselves; they are built together, once, with their tests.
export THREADKEEP_BIN="$PWD/target/debug/threadkeep"
build() {
    check 'Build' cargo test --quiet --locked --no-run
}
other_crates() {
    check 'The load test, by services that lie, and the double of a model provider' \
        cargo test --locked -p threadkeep-load -p threadkeep-scripted-upstream "$@"
}

finish() {
    seconds=$(($(date +%s) - started))
    printf '\nNo check failed in %s min %s s.\nchecks: %s passed, 0 failed, %s skipped\n' \
        "$((seconds / 60))" "$((seconds % 60))" "$(grep -c passed "$outcomes")" "$(grep -c skipped "$outcomes")"
    rm -f "$outcomes"
}

# The suites of clients, frameworks and browsers. Those behind the first run two at a time, since each waits half of its time.
suites() {
    # its pages hardly depend on the store: the other one is for the long form
    check 'The console in a browser' env STORES=redis tests/console.sh
    both target/suites.log other_suites suites_of_pages || fail 'Suites FAILED: see above'
}
suites_of_pages() {
    check 'Page of the API in a browser' tests/docs-page.sh
    check 'Threads of the hooks of use-agent' over_each_store tests/use-agent.sh
    check 'The TypeScript package' tests/typescript.sh
    check 'Stores of frameworks in TypeScript' over_each_store tests/typescript-adapters.sh
    check 'Streams of events by a library' over_each_store tests/event-stream.sh
    check 'Signatures of webhooks, by others' over_each_store tests/webhooks.sh
    check 'Apps of the runtime of Agentuity' tests/agentuity.sh
    check 'MCP, by its official clients' over_each_store tests/mcp.sh
    check 'Tools, by the libraries of model providers' tests/tool-definitions.sh
}
other_suites() {
    check 'Shell and Python of the documents' over_each_store tests/documents.sh
    check 'Conversations by the clients of OpenAI' over_each_store tests/openai.sh
    check 'The double of a model provider, by the clients of OpenAI and Anthropic' tests/upstream.sh
    check 'Odd requests' over_each_store tests/schemathesis.sh
    check 'The Python package' tests/python.sh
    check 'Stores of frameworks in Python' tests/python-adapters.sh
}

if [ "$form" = suites ]; then
    build
    other_crates --no-run
    suites
    finish
    exit
fi

check 'Shell scripts' shellcheck -x test.sh .ci/run benches/run.sh benches/peers/run.sh \
    deploy/make-keys.sh deploy/run-load.sh examples/web-chat/start.sh scripts/build-pgo.sh scripts/cluster-local.sh \
    tests/agentuity.sh tests/balancer.sh tests/cluster-load.sh tests/compose.sh tests/console.sh tests/docs-page.sh tests/documents.sh \
    tests/event-stream.sh tests/kubernetes.sh tests/mcp.sh tests/openai.sh tests/python-adapters.sh tests/python.sh \
    tests/schemathesis.sh tests/tool-definitions.sh tests/typescript-adapters.sh tests/typescript.sh tests/upstream.sh \
    tests/use-agent.sh tests/webhooks.sh
check 'Compose file' docker-compose --profile load --profile metrics config --quiet
check 'Prometheus file' promtool check config deploy/prometheus.yml
check 'Prose' python3 tests/prose.py
check 'Alerts' promtool test rules tests/alerts.yml
check 'Balancer file' haproxy -c -f deploy/haproxy.cfg
check 'Service unit' service_unit
check 'Form' cargo fmt --all --check
# that is all that is done about the peers here: a build of them takes as long as all the rest
check 'Form of the peers' cargo fmt --check --manifest-path benches/peers/rust/Cargo.toml
check 'Express peer' node --check benches/peers/express/server.js
check 'FastAPI peer' \
    env PYTHONPYCACHEPREFIX=target/pycache python3 -m py_compile benches/peers/fastapi/server.py

# An argument denies warnings, since RUSTFLAGS would build all dependencies again.
check 'Lints' cargo clippy --locked --workspace --all-targets -- -D warnings
if [ "$form" = quick ]; then
    # left out: tests that run over a cluster, wait for faults, or take long by themselves
    check 'Quick tests' tests "$at_once" --lib --bins --test it -- --skip cluster --skip faults:: \
        --skip budgets:: --skip hostile:: --skip differential:: --skip scope_lists:: --skip lists:: \
        --skip rotation:: --skip confirmed
    finish
    exit
fi

check 'Documentation' env RUSTDOCFLAGS='-D warnings' cargo doc --locked --workspace --no-deps

# The library as apps use it, without the server, and on the embedded store alone.
check 'Library with Redis' cargo clippy --locked --no-default-features --features redis -- -D warnings
check 'Library alone' cargo clippy --locked --no-default-features -- -D warnings

# Only a few lines are of this build alone, so the long form lints and runs its tests.
check 'Server without Redis' cargo clippy --locked --no-default-features --features server -- -D warnings

check 'Public API' cargo run --quiet --locked -p threadkeep-public-api

build
check 'Benchmarks build' cargo build --locked --benches --examples

check 'Tests' tests "$at_once" -- --skip faults:: --skip budgets:: --skip hostile::
# Every suite over one Redis, once more without copies in memory.
without_copies() (
    export THREADKEEP_READ_CACHE_BYTES=0
    tests "$at_once" --test it -- ::redis:: differential::after_any_list_memory --skip library::
)
check 'Tests without the read cache' without_copies
check 'Tests of faults, budgets and hostile requests' \
    tests "$(nproc)" --test it -- faults:: budgets:: hostile::
other_crates

# Most of its time goes to waiting, so the others run at the same time.
tests/compose.sh >target/compose.log 2>&1 </dev/null &
compose=$!
trap 'kill "$compose" 2>/dev/null || true; wait "$compose" || true' EXIT
check 'Kubernetes manifests' tests/kubernetes.sh
check 'Replicas behind the balancer' tests/balancer.sh
check 'The load test, while replicas end and are started again' tests/cluster-load.sh
suites
check 'The compose file in containers' outcome_of "$compose" target/compose.log
trap - EXIT

if [ "$form" = long ]; then
    check 'Installation of cargo-deny' install_cargo_deny
    check 'Licences and sources of dependencies' dependencies
    check 'The console over the embedded store' env STORES=memory tests/console.sh
    check 'More random lists' env THREADKEEP_TEST_ALL_LISTS=1 cargo test --locked --test it -- differential::
    check 'The Python package with every Python' tests/python.sh long
    check 'The oldest frameworks in Python' tests/python-adapters.sh long
    check 'Lints of tests without Redis' \
        cargo clippy --locked --no-default-features --features server --all-targets -- -D warnings
    check 'Tests without Redis' tests "$at_once" --no-default-features --features server --lib --bins --test it -- --skip budgets:: --skip hostile::
fi

finish
