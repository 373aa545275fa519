"""The stages of the quick, common and long forms of ./test.sh, the longest first. tests/run.py runs them."""

from run import Stage

# How the program answers over HTTP, without its stores.
CONTRACT = (
    "openapi.json", "src/events", "src/http", "src/identity", "src/protocols", "src/web", "tests/server.sh", "tests/packages.sh",
)  # fmt: skip

# Half of what a test takes is waiting.
AT_ONCE = "RUST_TEST_THREADS=$((2 * $(nproc)))"


def cargo_test(*arguments: str) -> str:
    # Always the whole workspace: with other packages, dependencies would have other features, and be built again.
    return " ".join(("cargo test --locked --workspace", *arguments))


def it(*arguments: str, skip: tuple[str, ...] = (), at_once: str = AT_ONCE) -> str:
    return f"{at_once} {cargo_test('--test it --', *arguments, *(f'--skip {name}' for name in skip))}"


BUILD = Stage("Build", cargo_test("--quiet --no-run"), cores=1.7)
# one job, since tests run at the same time
LINTS = Stage("Lints", "cargo clippy --locked --workspace --all-targets --jobs 1 -- -D warnings")

FILES = [
    Stage("Shell scripts", "git ls-files '*.sh' .ci/run | xargs shellcheck -x -P .:clients/python", cores=0.3),
    Stage("Prose", "python3 tests/prose.py", cores=0.3),
    Stage("Form", "cargo fmt --all --check && cargo fmt --check --manifest-path benches/peers/rust/Cargo.toml", cores=0.3),
    Stage("Compose file", "docker-compose --profile load --profile metrics config --quiet", cores=0.3),
    Stage("Prometheus file", "promtool check config deploy/prometheus.yml", cores=0.3),
    Stage("Alerts", "promtool test rules tests/alerts.yml", cores=0.3),
    Stage("Balancer file", "haproxy -c -f deploy/haproxy.cfg", cores=0.3),
    Stage("Service unit", "tests/service-unit.sh", cores=0.3),
    # A build of the peers takes as long as all the rest.
    Stage("Express peer", "node --check benches/peers/express/server.js", cores=0.3),
    Stage("FastAPI peer", "python3 -m py_compile benches/peers/fastapi/server.py", cores=0.3),
]

# Tests of faults, budgets and hostile requests look at how long clients wait, so fewer of them run at the same time.
MEASURING = ("faults::", "budgets::", "hostile::")
HTTP = ("http::", "protocols::")
# Chapters that read no states of threads: copies of states, which each replica has, change nothing for them.
WITHOUT_STATES = (
    "entries", "entry_", "idle_namespaces", "leases", "ledgers", "listings", "namespaces", "rates", "registry", "response",
    "scope_", "searches", "streamed_turns", "upkeep", "watching",
)  # fmt: skip

TESTS = [
    Stage("Tests of stores", it(skip=MEASURING + HTTP), cores=1.3, after=("Build",)),
    # Every store keeps the same promises, so the protocols run over one.
    Stage("Tests of HTTP and protocols", it(*HTTP, skip=("::memory::", "::memory_alone::")), cores=1.3, after=("Build",)),
    Stage("Tests of units", cargo_test("--lib --bins"), after=("Build",)),
    Stage("Tests of faults, budgets and hostile requests", it(*MEASURING, at_once=""), cores=1.3,
          after=("Build",)),
    Stage("Tests without copies", "THREADKEEP_READ_CACHE_BYTES=0 " + it(
        "conformance::", "differential::after_any_list_memory",
        skip=("::memory::", "::cluster::", "::confirmed", *(f"conformance::{name}" for name in WITHOUT_STATES)),
    ), cores=1.3, after=("Build",)),
    Stage("Tests of the load test and the double of a provider",
          cargo_test("--test account --test upstream"), after=("Build",)),
    Stage("Another version of the store", "tests/store-versions.sh", cores=1.3, after=("Build",)),
]  # fmt: skip


def suite(name: str, script: str, cores: float = 0.65, inputs: tuple[str, ...] = ()) -> Stage:
    return Stage(name, f"tests/{script}", cores, ("Build",), (*inputs, f"tests/{script.split()[0]}") if inputs else ())


CLUSTER = [
    suite("The compose file in containers", "compose.sh", inputs=(
        "Dockerfile", ".dockerignore", "docker-compose.yml", "deploy", "docs/operations.md", "README.md", "load", "Cargo.lock",
        "src/app", "src/config",
    )),
    suite("The load test, while replicas end and are started again", "cluster-load.sh"),
    suite("Replicas behind the balancer", "balancer.sh"),
    suite("Kubernetes manifests", "kubernetes.sh"),
]

CLIENTS = [
    suite("The console in a browser", "console.sh redis",
          inputs=("console", "src/app/console", "clients/typescript/tests/support", *CONTRACT)),
    suite("The Python package", "python.sh redis"),
    suite("Stores of frameworks in Python", "python-adapters.sh redis", inputs=("clients/python", "tests/python-package.sh", *CONTRACT)),
    suite("Conversations by the clients of OpenAI", "openai.sh redis"),
    suite("Odd requests", "schemathesis.sh redis", inputs=("tests/schemathesis_hooks.py", *CONTRACT)),
    suite("The TypeScript package", "typescript.sh redis", inputs=("clients/typescript", "examples/web-chat", *CONTRACT)),
    suite("Stores of frameworks in TypeScript", "typescript-adapters.sh redis", inputs=("clients/typescript", *CONTRACT)),
    suite("Shell and Python of the documents", "documents.sh redis"),
    suite("Page of the API in a browser", "docs-page.sh"),
    suite("Threads of the hooks of use-agent", "use-agent.sh redis"),
    suite("Streams of events by a library", "event-stream.sh redis"),
    suite("Apps of the runtime of Agentuity", "agentuity.sh"),
    suite("Tools, by the libraries of model providers", "tool-definitions.sh"),
    suite("The double of a provider, by the clients of OpenAI and Anthropic", "upstream.sh"),
    suite("MCP, by its official clients", "mcp.sh redis"),
    suite("Signatures of webhooks, by others", "webhooks.sh redis"),
]

LIBRARY = [
    Stage("Documentation", "RUSTDOCFLAGS='-D warnings' cargo doc --locked --workspace --no-deps", after=("Lints",)),
    Stage("Public API", "cargo run --quiet --locked -p threadkeep-public-api", after=("Lints",)),
    # as apps use it, with the features that the list of its API is made with
    Stage("Library", "cargo check --locked --no-default-features --features redis,tls,jwt", after=("Public API",)),
]

QUICK = [
    *FILES,
    LINTS,
    BUILD,
    # Left out: tests that run over a cluster, wait for faults, or take long by themselves.
    Stage("Quick tests", " && ".join((
        cargo_test("--lib --bins"),
        it(skip=(*MEASURING, *HTTP, "cluster", "confirmed", "differential::", "lists::", "rotation::", "linearizable::")),
        it(*HTTP, skip=("::redis::", "::redis_alone::")),
    )), cores=2, after=("Build",)),
]  # fmt: skip
COMMON = [BUILD, LINTS, *TESTS, *CLUSTER, *CLIENTS, *LIBRARY, *FILES]
LONG = [
    *COMMON,
    Stage("HTTP and protocols over the embedded store", it(*HTTP, skip=("::redis::", "::redis_alone::")), cores=1.3,
          after=("Build",)),
    Stage("Everything on Redis without copies", "THREADKEEP_READ_CACHE_BYTES=0 " + it("::redis::", skip=("library::",)),
          cores=1.3, after=("Build",)),
    Stage("More random lists", "THREADKEEP_TEST_ALL_LISTS=1 " + it("differential::"), cores=1.3, after=("Build",)),
    Stage("All versions of the store", "tests/store-versions.sh all", cores=1.3, after=("Build",)),
    suite("The console over the embedded store, in all sizes and themes", "console.sh long"),
    suite("The Python package with every Python", "python.sh long"),
    suite("The oldest frameworks in Python, over both stores", "python-adapters.sh long"),
    suite("The TypeScript package with every Node and React", "typescript.sh long"),
    suite("Stores of frameworks in TypeScript, with more writes", "typescript-adapters.sh memory long"),
    suite("Conversations by all versions of OpenAI's clients", "openai.sh memory long"),
    *(suite(f"{name.removesuffix('.sh')} over the embedded store", f"{name} memory")
      for name in ("documents.sh", "event-stream.sh", "mcp.sh", "schemathesis.sh", "use-agent.sh", "webhooks.sh")),
    Stage("Licences and sources of dependencies", "tests/licences.sh"),
    *(Stage(f"Lints, {parts or 'no features'}", f"cargo clippy --locked --no-default-features {parts} -- -D warnings",
            after=("Lints",))
      for parts in ("--features server --all-targets", "--features redis", "")),
    Stage("Tests without Redis", "cargo test --locked --no-default-features --features server --lib --bins --test it -- "
          "--skip budgets:: --skip hostile::", cores=1.3, after=("Build",)),
]  # fmt: skip

FORMS = {"quick": QUICK, "common": COMMON, "long": LONG}


def stages_of(form: str) -> list[Stage]:
    return FORMS[form]
