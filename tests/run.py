"""Runs the stages of tests/stages.py in parallel, and prints the time that each takes.

usage: tests/run.py quick|common|long

A stage starts when its `after` stages have passed and enough cores are free. When a stage ends, its output is printed;
target/logs also contains the output. If a stage fails, the stages that depend on it do not run. A stage that has passed is
skipped as long as its inputs are unchanged, except in the long form. target/times.tsv lists the times.
"""

import hashlib
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "threadkeep"
SKIPPED = 77
# Maximum total load of the stages that run in parallel, in units of `Stage.cores`. Does not depend on the machine's
# number of cores, because tests use more threads on larger machines.
LOAD_MAX = 2
END_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
CLEANUP_SECONDS = 60
# Time limit for a stage, in seconds. A stage that takes longer fails.
LIMIT_SECONDS = 5_400
# Number of lines to print again from the end of each failed stage's output.
LAST_LINES = 40


@dataclass(frozen=True)
class Stage:
    """A stage of the test run, which is one command.

    `cores` is the load that the command causes (see `LOAD_MAX`). `after` names the stages that must pass first. `inputs` are the files
    and folders that determine the outcome. A stage without inputs always runs.
    """

    name: str
    command: str
    cores: float = 1
    after: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()

    @property
    def slug(self) -> str:
        return "".join(c if c.isalnum() else "-" for c in self.name.lower())


@dataclass
class Running:
    stage: Stage
    process: subprocess.Popen[bytes]
    started: float


@dataclass(frozen=True)
class Result:
    stage: Stage
    outcome: str
    seconds: float = 0
    cpu_seconds: float = 0


def digest(inputs: tuple[str, ...]) -> str:
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate", *inputs],
        cwd=ROOT, capture_output=True, check=True,
    ).stdout
    content = hashlib.sha256()
    for name in sorted(listed.split(b"\0")):
        path = ROOT / os.fsdecode(name)
        if name and path.is_file():
            content.update(name + b"\0" + hashlib.sha256(path.read_bytes()).digest())
    return content.hexdigest()


class PassedStages:
    """Records which stages have passed, and with which inputs. All checkouts share the record."""

    def __init__(self, stages: list[Stage], skips_passed: bool) -> None:
        self.skips_passed = skips_passed
        # computed before any stage runs, because a stage may change inputs
        self.markers = {stage.name: self.marker_of(stage) for stage in stages if stage.inputs}

    def has(self, stage: Stage) -> bool:
        return self.skips_passed and stage.inputs != () and self.markers[stage.name].exists()

    def add(self, stage: Stage) -> None:
        # do not record the stage if its inputs changed during the run
        marker = self.markers.get(stage.name)
        if marker and marker == self.marker_of(stage):
            marker.parent.mkdir(parents=True, exist_ok=True)
            marker.touch()

    @staticmethod
    def marker_of(stage: Stage) -> Path:
        content = hashlib.sha256(f"{stage.command}\0{digest(stage.inputs)}".encode())
        return CACHE / "green" / f"{stage.slug}-{content.hexdigest()}"


class Run:
    def __init__(self, stages: list[Stage], cores: float, passed: PassedStages) -> None:
        names = {stage.name for stage in stages}
        for stage in stages:
            unknown = set(stage.after) - names
            assert not unknown, f"{stage.name} comes after unknown stages: {unknown}"
        self.waiting = list(stages)
        self.running: dict[int, Running] = {}
        self.results: list[Result] = []
        self.cores = cores
        self.passed = passed

    def run_all(self) -> list[Result]:
        try:
            while self.waiting or self.running:
                self.start_ready()
                if self.running:
                    self.wait_for_one()
        finally:
            self.stop()
        return self.results

    def stop(self) -> None:
        """Stops the running stages, and waits until they have cleaned up."""
        for number in END_SIGNALS:
            signal.signal(number, signal.SIG_IGN)
        self.signal_all(signal.SIGTERM)
        deadline = time.monotonic() + CLEANUP_SECONDS
        while self.running and time.monotonic() < deadline:
            self.running.pop(os.waitpid(-1, os.WNOHANG)[0], None)
            time.sleep(0.05)
        self.signal_all(signal.SIGKILL)

    def signal_all(self, number: int) -> None:
        for running in self.running.values():
            signal_group(running, number)

    def start_ready(self) -> None:
        outcomes = {result.stage.name: result.outcome for result in self.results}
        for stage in list(self.waiting):
            before = [outcomes.get(name) for name in stage.after]
            if "failed" in before or "not run" in before:
                self.end(stage, Result(stage, "not run"))
            elif None in before:
                continue
            elif self.passed.has(stage):
                self.end(stage, Result(stage, "unchanged"))
            elif not self.running or self.free() >= stage.cores:
                self.start(stage)

    def free(self) -> float:
        return self.cores - sum(running.stage.cores for running in self.running.values())

    def end(self, stage: Stage, result: Result) -> None:
        self.waiting.remove(stage)
        self.results.append(result)
        print(f"==> {stage.name}: {result.outcome}", flush=True)

    def start(self, stage: Stage) -> None:
        self.waiting.remove(stage)
        print(f"==> {stage.name}: started", flush=True)
        with open(log_of(stage), "wb") as log:
            process = subprocess.Popen(
                ["sh", "-ec", stage.command], cwd=ROOT, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True,
            )
        self.running[process.pid] = Running(stage, process, time.monotonic())

    def wait_for_one(self) -> None:
        while True:
            pid, status, usage = os.wait4(-1, os.WNOHANG)
            if pid in self.running:
                break
            for running in self.running.values():
                late = time.monotonic() - running.started - LIMIT_SECONDS
                if late > 0:
                    signal_group(running, signal.SIGKILL if late > CLEANUP_SECONDS else signal.SIGTERM)
            time.sleep(0.05)
        running = self.running.pop(pid)
        running.process.returncode = os.waitstatus_to_exitcode(status)
        outcome = {0: "passed", SKIPPED: "skipped"}.get(running.process.returncode, "failed")
        result = Result(running.stage, outcome, time.monotonic() - running.started, usage.ru_utime + usage.ru_stime)
        if outcome == "passed":
            self.passed.add(running.stage)
        self.results.append(result)
        report(result)


def signal_group(running: Running, number: int) -> None:
    try:
        os.killpg(running.process.pid, number)
    except ProcessLookupError:
        pass


def log_of(stage: Stage) -> Path:
    return ROOT / "target" / "logs" / f"{stage.slug}.log"


def report(result: Result) -> None:
    stage = result.stage
    print(f"\n==> {stage.name}\n    {stage.command}", flush=True)
    sys.stdout.buffer.write(log_of(stage).read_bytes())
    sys.stdout.buffer.flush()
    print(f"    {result.outcome} in {result.seconds:.0f} s", flush=True)


def last_lines(result: Result) -> str:
    lines = log_of(result.stage).read_text(errors="replace").splitlines()
    return "\n".join([f"\n==> {result.stage.name} failed; the end of its output:", *lines[-LAST_LINES:]])


def table(results: list[Result], seconds: float) -> str:
    rows = [("stage", "outcome", "seconds", "cpu_seconds")]
    rows += [(r.stage.name, r.outcome, f"{r.seconds:.1f}", f"{r.cpu_seconds:.1f}") for r in results]
    cpu = sum(result.cpu_seconds for result in results)
    rows.append(("all", "", f"{seconds:.1f}", f"{cpu:.1f}"))
    return "".join("\t".join(row) + "\n" for row in rows)


def aligned(lines: str) -> str:
    rows = [line.split("\t") for line in lines.splitlines()]
    widths = [max(map(len, column)) for column in zip(*rows)]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths)) for row in rows)


def main() -> int:
    from stages import stages_of

    form = sys.argv[1]
    for number in END_SIGNALS[1:]:
        signal.signal(number, lambda number, _: sys.exit(128 + number))
    (ROOT / "target" / "logs").mkdir(parents=True, exist_ok=True)
    started = time.monotonic()
    stages = stages_of(form)
    results = Run(stages, LOAD_MAX, PassedStages(stages, form != "long")).run_all()
    times = table(results, time.monotonic() - started)
    (ROOT / "target" / "times.tsv").write_text(times)
    print("\n" + aligned(times))
    for result in results:
        if result.outcome == "failed":
            print(last_lines(result))
    count = lambda *outcomes: sum(result.outcome in outcomes for result in results)
    print(f"checks: {count('passed')} passed, {count('failed', 'not run')} failed, {count('skipped', 'unchanged')} skipped")
    return 0 if count("failed", "not run") == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
