"""Checks the files of a release, and starts the program from them: release.py DIRECTORY PROGRAM

DIRECTORY contains the files in `files`, the unpacked archive in `archive`, a virtual environment with the wheel in `venv`,
and the npm packages in `node`. Prints how long each start takes until the first answer. The time limit applies to the CPU
time of all processes, because elapsed time depends on the load of the machine.
"""

import json
import os
import pathlib
import re
import resource
import select
import signal
import subprocess
import sys
import tarfile
import time
import urllib.request
import zipfile

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

WAIT_LIMIT_S = 120
# maximum CPU time to start, answer one request and stop
CPU_LIMIT_S = 3
ENVIRONMENT = {name: os.environ[name] for name in ("HOME", "PATH")} | {"npm_config_update_notifier": "false"}
START = ["--listen", "127.0.0.1:0"]


def one(directory, pattern):
    (path,) = directory.glob(pattern)
    return path


def cpu_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def descendants(pid):
    """Returns the descendants of a process. Each process must have at most one child."""
    parents = {}
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            # the last ")" ends the program's name, which may contain any character (proc_pid_stat(5))
            parents[int(path.read_text().rpartition(")")[2].split()[1])] = int(path.parent.name)
        except FileNotFoundError:
            continue
    found = []
    while pid := parents.get(pid):
        found.append(pid)
    return found


def start(command, directory):
    """Starts the server. Returns its process, and the seconds until its first answer."""
    log = directory / "start.log"
    with log.open("w") as output:
        began = time.monotonic()
        server = subprocess.Popen([*command, *START], stderr=output, cwd=directory, env=ENVIRONMENT)
    while not (found := re.search(r'"listening","address":"([^"]*)"', log.read_text())):
        assert server.poll() is None and time.monotonic() < began + WAIT_LIMIT_S, log.read_text()
        time.sleep(0.005)
    with urllib.request.urlopen(f"http://{found[1]}/healthz", timeout=WAIT_LIMIT_S) as answer:
        assert answer.status == 200
    return server, time.monotonic() - began


def check_start(name, command, directory, number=signal.SIGTERM, target=lambda pid: pid):
    before = cpu_seconds()
    server, seconds = start(command, directory)
    program = os.pidfd_open([server.pid, *descendants(server.pid)][-1])
    os.kill(target(server.pid), number)
    assert server.wait(WAIT_LIMIT_S) == 0, name
    # the descriptor becomes readable when the program has ended
    assert select.select([program], [], [], WAIT_LIMIT_S)[0], f"{name} still runs"
    os.close(program)
    used = cpu_seconds() - before
    print(f"{name}: answers after {seconds:.2f} s; {used:.2f} s of CPU until its end")
    assert used < CPU_LIMIT_S, used


def check_arguments(name, command, directory):
    """Checks that the launcher passes arguments on, and returns the program's output and exit code."""
    run = lambda *more: subprocess.run([*command, *more], cwd=directory, env=ENVIRONMENT, capture_output=True, text=True)
    done = run("--version")
    assert done.returncode == 0 and re.fullmatch(r"threadkeep \d+\.\d+\.\d+\S*\n", done.stdout), (name, done)
    done = run("--no-such-flag")
    assert done.returncode == 2 and "--no-such-flag" in done.stderr, (name, done)


def check_launcher(node, launcher):
    # if a signal ends the program, the launcher exits with the code that a shell would use
    server, _ = start([launcher], node)
    os.kill(descendants(server.pid)[-1], signal.SIGKILL)
    assert server.wait(WAIT_LIMIT_S) == 128 + signal.SIGKILL

    package = one(node / "node_modules", "threadkeep-server-*")
    package.rename(node / "away")
    try:
        done = subprocess.run([launcher], cwd=node, env=ENVIRONMENT, capture_output=True, text=True)
    finally:
        (node / "away").rename(package)
    assert done.returncode == 1 and f"the package {package.name} is missing" in done.stderr, done


def check_wheel(path):
    with zipfile.ZipFile(path) as wheel:
        names = wheel.namelist()
    # the wheel must not contain files of the client package, whose module is `threadkeep`
    assert all(re.match(r"threadkeep_server-[^/]+\.(data|dist-info)/", name) for name in names), names


def check_npm(files):
    launcher = json.loads(member(one(files, "threadkeep-server-[0-9]*.tgz"), "package/package.json"))
    platform = json.loads(member(one(files, "threadkeep-server-*-*-*.tgz"), "package/package.json"))
    assert launcher["optionalDependencies"][platform["name"]] == launcher["version"] == platform["version"]
    assert "scripts" not in launcher and "scripts" not in platform


def check_bill(path):
    text = path.read_text()
    fault = JsonStrictValidator(SchemaVersion.V1_5).validate_str(text)
    assert fault is None, fault
    bill = json.loads(text)
    names = {component["name"] for component in bill["components"]}
    # the program contains the first three crates; only tests or builds need the last three crates
    assert {"actix-web", "redis", "threadkeep-domain"} <= names and not names & {"proptest", "serde_derive", "cc"}
    refs = {component["bom-ref"] for component in bill["components"]}
    for component in bill["components"]:
        assert "hashes" in component or component["name"].startswith("threadkeep-"), component
    assert refs < {row["ref"] for row in bill["dependencies"]}
    return bill


def check_notices(text, bill):
    listed, _, texts = text.partition("-" * 100)
    for component in bill["components"]:
        if "hashes" in component:
            assert f"\n{component['name']} {component['version']}: " in listed, component
    assert "actix-web" in texts and "Permission is hereby granted" in texts
    # jemalloc's licence is in a subfolder of the crate that builds jemalloc
    assert "jasone@canonware.com" in texts


def check_chart(path):
    chart = pathlib.Path("deploy/helm/threadkeep")
    with tarfile.open(path) as archive:
        packed = {entry.name: archive.extractfile(entry).read() for entry in archive}
    ours = {f"threadkeep/{file.relative_to(chart)}": file.read_bytes() for file in chart.rglob("*") if file.is_file()}
    assert packed == ours, packed.keys() ^ ours.keys()


def member(path, name):
    with tarfile.open(path) as archive:
        return archive.extractfile(name).read()


def main(directory, program):
    directory = pathlib.Path(directory)
    files, node = directory / "files", directory / "node"
    check_wheel(one(files, "*.whl"))
    check_npm(files)
    bill = check_bill(one(files, "*.cdx.json"))
    check_notices(one(directory, "archive/*/LICENSES-THIRD-PARTY.txt").read_text(), bill)
    check_chart(one(files, "threadkeep-chart-*.tgz"))

    launcher = str(node / "node_modules/.bin/threadkeep-server")
    starts = {
        "archive": [str(one(directory, "archive/*/threadkeep"))],
        "wheel": [str(directory / "venv/bin/threadkeep")],
        "npx threadkeep-server": ["npx", "--offline", "threadkeep-server"],
    }
    check_start("the program itself", [program], directory)
    for name, command in starts.items():
        check_arguments(name, command, node)
        # npx forwards signals only to its shell, so send the signal to the launcher, the parent of the program
        target = (lambda pid: descendants(pid)[-2]) if name.startswith("npx") else (lambda pid: pid)
        check_start(name, command, node, target=target)
    for number in (signal.SIGINT, signal.SIGTERM):
        check_start(f"the launcher, ended by {number.name}", [launcher], node, number)
    check_launcher(node, launcher)


main(sys.argv[1], os.path.abspath(sys.argv[2]))
