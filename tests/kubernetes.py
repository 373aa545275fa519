"""Runs the server with the settings of the Deployment in deploy/kubernetes."""

import os
import pathlib
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request

import yaml

MANIFESTS = pathlib.Path("deploy/kubernetes")
WAIT_LIMIT_S = 120


def load(name):
    return yaml.safe_load((MANIFESTS / name).read_text())


def status(url):
    try:
        with urllib.request.urlopen(url, timeout=WAIT_LIMIT_S) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code


def main(program, directory):
    kustomization = load("kustomization.yaml")
    listed = {*kustomization["resources"], "kustomization.yaml"}
    assert listed == {path.name for path in MANIFESTS.iterdir()}, listed

    pod = load("deployment.yaml")["spec"]["template"]
    container = pod["spec"]["containers"][0]
    assert container["image"] == kustomization["images"][0]["name"]
    labels = pod["metadata"]["labels"]
    assert load("service.yaml")["spec"]["selector"] == labels
    assert load("disruption-budget.yaml")["spec"]["selector"]["matchLabels"] == labels

    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    variables = {}
    for variable in container["env"]:
        value = variable.get("value")
        if variable.get("valueFrom", {}).get("secretKeyRef", {}).get("optional"):
            continue
        if value is None:
            assert variable["name"] == "THREADKEEP_REDIS_URL"
            value = f"unix://{directory}/redis.sock"
        if value.startswith("/keys/"):
            keys = pathlib.Path(directory, value.rsplit("/", 1)[1])
            keys.write_bytes(subprocess.check_output([program, "keygen", "--name", "first"]))
            value = str(keys)
        for name, port in ports.items():
            if value == f":{port}":
                # listen on any free port instead
                value, ports[name] = ":0", None
        variables[variable["name"]] = value
    assert set(ports.values()) == {None}, ports

    grace_s = pod["spec"]["terminationGracePeriodSeconds"]
    config = subprocess.check_output([program, "config"], env=variables, cwd=directory, text=True)
    settings = dict(line.split()[:2] for line in config.splitlines() if len(line.split()) > 2)
    assert grace_s > int(settings["drain_seconds"]) + int(settings["shutdown_seconds"])

    log = pathlib.Path(directory, "kubernetes.log")
    with log.open("w") as output:
        server = subprocess.Popen([program], env=variables, cwd=directory, stderr=output)
    try:
        patterns = {
            "http": r'"listening","address":"[^"]*:(\d+)"',
            "metrics": r'"listening for metrics","address":"[^"]*:(\d+)"',
        }
        deadline = time.monotonic() + WAIT_LIMIT_S
        listening_ports = {}
        while len(listening_ports) < len(patterns):
            assert server.poll() is None and time.monotonic() < deadline, log.read_text()
            listening_ports = {name: re.search(line, log.read_text()) for name, line in patterns.items()}
            listening_ports = {name: match[1] for name, match in listening_ports.items() if match}
            time.sleep(0.05)
        for probe in ["startupProbe", "livenessProbe", "readinessProbe"]:
            get = container[probe]["httpGet"]
            assert status(f"http://127.0.0.1:{listening_ports[get['port']]}{get['path']}") == 200, probe
        annotated = pod["metadata"]["annotations"]["prometheus.io/port"]
        assert int(annotated) == {p["name"]: p["containerPort"] for p in container["ports"]}["metrics"]
        assert status(f"http://127.0.0.1:{listening_ports['metrics']}/metrics") == 200
        assert status(f"http://127.0.0.1:{listening_ports['http']}/metrics") == 404
    finally:
        server.terminate()
        assert server.wait(grace_s) == 0
    print("the manifests run")


main(os.path.abspath(sys.argv[1]), sys.argv[2])
