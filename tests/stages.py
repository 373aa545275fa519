"""The stages of the quick, common and long forms of ./test.sh. tests/run.py runs them."""

from run import Stage

# The sources that determine the answers over HTTP, except the sources of the stores.
CONTRACT = (
    "Cargo.lock", "openapi.json", "crates/events", "crates/http", "crates/identity", "crates/protocols", "crates/web", "tests/server.sh", "tests/packages.sh",
)  # fmt: skip

# Run more tests in parallel than there are cores, because tests spend half of their time waiting.
TEST_THREADS = "RUST_TEST_THREADS=$((2 * $(nproc)))"


def run(program: str, *arguments: str, skip: tuple[str, ...] = (), threads: str = TEST_THREADS) -> str:
    return " ".join((threads, f"target/tests/{program}", *arguments, *(f"--skip {name}" for name in skip))).strip()


UNITS = "for program in target/tests/units/*; do $program; done"

BUILD = Stage("Build", "python3 tests/build.py", cores=1.7)
LINTS = Stage("Lints", "cargo clippy --locked --workspace --all-targets --jobs 1 -- -D warnings", 0.75, ("Build",))

FILES = [
    Stage("Shell scripts", "git ls-files --cached --others --exclude-standard '*.sh' .ci/run | xargs shellcheck -x -P .:clients/python", cores=0.3),
    Stage("Prose", "python3 tests/prose.py", cores=0.3),
    Stage("Site", "tests/site.sh", cores=0.5),
    Stage("Formatting", "cargo fmt --all --check && cargo fmt --check --manifest-path benches/peers/rust/Cargo.toml", cores=0.3),
    Stage("Compose file", "docker-compose --profile load --profile metrics config --quiet", cores=0.3),
    Stage("Prometheus file", "promtool check config deploy/prometheus.yml", cores=0.3),
    Stage("Alerts", "promtool test rules tests/alerts.yml", cores=0.3),
    Stage("Balancer file", "haproxy -c -f deploy/haproxy.cfg", cores=0.3),
    Stage("Service unit", "tests/service-unit.sh", cores=0.3),
    Stage("Workflows", "tests/workflow.sh", cores=0.3),
    # Check only the syntax of these servers for benchmarks, because builds would take as long as all other stages.
    Stage("Express peer", "node --check benches/peers/express/server.js", cores=0.3),
    Stage("FastAPI peer", "PYTHONPYCACHEPREFIX=target/pycache python3 -m py_compile benches/peers/fastapi/server.py", cores=0.3),
]

# These tests measure how long clients wait, so fewer of them run in parallel.
MEASURING = ("faults::", "budgets::", "hostile::")
HTTP = ("http::", "protocols::")
# Tests that do not read thread states. The read cache does not affect them, so the stage without the cache skips them.
WITHOUT_STATES = (
    "entries", "entry_", "idle_namespaces", "leases", "ledgers", "listings", "namespaces", "rates", "registry", "response",
    "scope_", "searches", "streamed_responses", "upkeep", "watching",
)  # fmt: skip

MEASURED = Stage("Tests of faults, budgets and hostile requests", f"{run('it', 'faults::', threads='')} && {run('contract', 'budgets::', 'hostile::', threads='')}",
                 cores=1.5, after=("Build",))  # fmt: skip

TESTS = [
    Stage("Tests of stores", f"{run('it', skip=MEASURING)} && {run('contract', skip=MEASURING + HTTP)}", cores=1, after=("Build",)),
    # All stores behave alike, so one store is enough for the protocols.
    Stage("Tests of HTTP and protocols", run("contract", *HTTP, skip=("::memory::", "::memory_alone::")), cores=0.75, after=("Build",)),
    Stage("Unit tests", UNITS, after=("Build",)),
    MEASURED,
    Stage("Tests without the read cache", "THREADKEEP_READ_CACHE_BYTES=0 " + run(
        "it", "conformance::", "differential::memory_and_redis_agree",
        skip=("::memory::", "::cluster::", "::confirmed", *(f"conformance::{name}" for name in WITHOUT_STATES)),
    ), cores=1, after=("Build",)),
    Stage("Tests of the load test and the scripted upstream",
          "target/tests/upstream && cd load && ../target/tests/account", after=("Build",)),
]  # fmt: skip


def suite(name: str, script: str, cores: float = 0.5, inputs: tuple[str, ...] = ()) -> Stage:
    return Stage(name, f"tests/{script}", cores, ("Build",), (*inputs, f"tests/{script.split()[0]}") if inputs else ())


CLUSTER = [
    suite("The compose file in containers", "compose.sh"),
    suite("The load test while replicas restart", "cluster-load.sh"),
    suite("Replicas behind the balancer", "balancer.sh"),
    suite("Kubernetes manifests and the Helm chart", "kubernetes.sh"),
    suite("Backup and restore", "backup.sh"),
]

# The files that determine the release files. The program is not listed, because the release script only packs it.
RELEASE = ("Cargo.toml", "Cargo.lock", "crates/*/Cargo.toml", "scripts/release.sh", "scripts/release")

RELEASES = [
    suite("Release files", "release.sh", 1,
          inputs=(*RELEASE, "deploy", "src/main.rs", "LICENSE-*", "README.md", "CHANGELOG.md", "tests/release.py", "tests/packages.sh")),
    # mostly waits for the crates.io index, once per crate
    Stage("Crates to publish", "scripts/release.sh --only crate --allow-dirty --dir target/crates", 0.3, ("Build",),
          (*RELEASE, "LICENSE-*", "README.md", "CHANGELOG.md")),
]  # fmt: skip

CLIENTS = [
    suite("Framework stores in Python", "python-adapters.sh redis", inputs=("clients/python", "tests/python-package.sh", *CONTRACT)),
    suite("The console in a browser", "console.sh redis",
          inputs=("console", "src/app/console", "clients/typescript/tests/support", *CONTRACT)),
    suite("The Python package", "python.sh redis"),
    suite("Conversations with OpenAI's clients", "openai.sh redis"),
    suite("Models with clients of the Responses API", "model-clients.sh redis"),
    suite("Open Responses, with our own tests of its specification", "open-responses.sh redis"),
    Stage("Unusual requests", "EXAMPLES=20 tests/schemathesis.sh redis", 0.5, ("Build",)),
    suite("The TypeScript package", "typescript.sh redis",
          inputs=("clients/typescript", "clients/thread-ids.json", "docs/client-verbs.md", "docs/webhooks.md", "examples/web-chat", "tests/npm-package.sh", *CONTRACT)),
    suite("Framework stores in TypeScript", "typescript-adapters.sh redis", inputs=("clients/typescript", "tests/npm-package.sh", *CONTRACT)),
    suite("Shell and Python code in the documentation", "documents.sh redis"),
    suite("API page in a browser", "docs-page.sh"),
    suite("Threads of the use-agent hooks", "use-agent.sh redis"),
    suite("Event streams with a client library", "event-stream.sh redis"),
    suite("Apps on Agentuity's runtime", "agentuity.sh"),
    suite("Tools with the libraries of model providers", "tool-definitions.sh"),
    suite("The scripted upstream with OpenAI's and Anthropic's clients", "upstream.sh"),
    suite("MCP with its official clients", "mcp.sh redis"),
    suite("MCP conformance suite", "mcp-conformance.sh redis"),
    suite("Webhook signatures with a third-party library", "webhooks.sh redis"),
]

# these stages run one at a time, because Cargo locks the target folder
LIBRARY = [
    Stage("Rust code in the documentation", "cargo test --quiet --locked --workspace --doc", after=("Lints",)),
    Stage("Documentation", "RUSTDOCFLAGS='-D warnings' cargo doc --locked --workspace --no-deps", after=("Rust code in the documentation",)),
    Stage("Public API", "cargo run --quiet --locked -p threadkeep-public-api", after=("Documentation",)),
    # enable the features that apps use, as the stage `Public API` does
    Stage("Library", "cargo check --locked --no-default-features --features redis,tls,jwt", after=("Public API",)),
]

QUICK = [
    *FILES,
    LINTS,
    BUILD,
    # Skips slow tests, tests of clusters, and tests that wait for faults.
    Stage("Quick tests", " && ".join((
        UNITS,
        run("it", skip=("faults::", "cluster", "confirmed", "differential::", "lists::", "linearizable::")),
        run("contract", skip=(*MEASURING, "rotation::", "cluster", "::redis::", "::redis_alone::")),
    )), cores=2, after=("Build",)),
]  # fmt: skip
# These stages start first, because they take a long time, have long chains of dependent stages, or leave few cores for
# other stages. The run then ends with many small stages that run in parallel.
FIRST = [BUILD, MEASURED, LINTS, *LIBRARY, *CLIENTS[:2]]
COMMON = [*FIRST, *(stage for stage in (*TESTS, *CLUSTER, *RELEASES, *CLIENTS, *FILES) if stage not in FIRST)]
# Stages that the long run replaces with long forms, which include the same tests and use the same folders.
REPLACED = (
    "The console in a browser", "The Python package", "Framework stores in Python", "The TypeScript package", "Unusual requests",
)  # fmt: skip
LONG = [
    *(stage for stage in COMMON if stage.name not in REPLACED),
    suite("More unusual requests", "schemathesis.sh redis"),
    Stage("HTTP and protocols over the embedded store", run("contract", *HTTP, skip=("::redis::", "::redis_alone::")), cores=1,
          after=("Build",)),
    Stage("All Redis tests without the read cache", f"export THREADKEEP_READ_CACHE_BYTES=0; {run('it', '::redis::', skip=('library::',))} && {run('contract', '::redis::')}",
          cores=1, after=("Build",)),
    Stage("More random differential tests", "THREADKEEP_TEST_ALL_LISTS=1 " + run("it", "differential::"), cores=1, after=("Build",)),
    Stage("All store versions", "tests/store-versions.sh all", cores=1, after=("Build",)),
    suite("The console over the embedded store, in all sizes and themes", "console.sh long"),
    suite("The Python package with every Python", "python.sh long"),
    suite("The oldest frameworks in Python, over both stores", "python-adapters.sh long"),
    suite("The TypeScript package with every Node and React", "typescript.sh long"),
    suite("Framework stores in TypeScript, with more writes", "typescript-adapters.sh redis long"),
    suite("Conversations with all versions of OpenAI's clients", "openai.sh redis long"),
    *(suite(f"{name.removesuffix('.sh')} over the embedded store", f"{name} memory")
      for name in ("docs-page.sh", "documents.sh", "event-stream.sh", "mcp.sh", "mcp-conformance.sh", "model-clients.sh", "open-responses.sh", "schemathesis.sh", "use-agent.sh", "webhooks.sh")),
    Stage("Licences and sources of dependencies", "tests/licences.sh"),
    # enable only the features of the shipped program; in a workspace build, other members add features
    Stage("The program alone", "cargo check --locked", after=("Library",)),
    *(Stage(f"Lints, {parts or 'no features'}", f"cargo clippy --locked --no-default-features {parts} -- -D warnings",
            after=("Lints",))
      for parts in ("--features redis", "")),
]  # fmt: skip

FORMS = {"quick": QUICK, "common": COMMON, "long": LONG}


def stages_of(form: str) -> list[Stage]:
    return FORMS[form]
