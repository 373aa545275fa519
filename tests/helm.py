"""Compares the Helm chart in deploy/helm with the manifests in deploy/kubernetes: helm.py OUTPUT

Writes the chart's objects, rendered with all options, to OUTPUT as YAML. A schema validator reads this file later.
"""

import pathlib
import sys

import helm_python as helm
import yaml

CHART = "deploy/helm/threadkeep"
MANIFESTS = pathlib.Path("deploy/kubernetes")
# labels that Helm adds to its objects
HELM_LABELS = {
    "app.kubernetes.io/instance",
    "app.kubernetes.io/version",
    "app.kubernetes.io/managed-by",
    "helm.sh/chart",
}
OPTIONS = {
    "image": {"tag": "1.2.3", "pullPolicy": "Always"},
    "imagePullSecrets": [{"name": "registry"}],
    "secret": {"create": True, "redisUrl": "redis://redis:6379", "signing": "a:1", "api": "b:2", "apiKeyRights": "b:all"},
    "redisTlsSecret": "redis-client",
    "trustedProxies": "10.0.0.0/8",
    "env": [{"name": "THREADKEEP_RATE_NEW_THREADS", "value": "60/1h"}],
    "autoscaling": {"enabled": False},
    "replicas": 2,
    "service": {"type": "LoadBalancer", "port": 8080, "annotations": {"a": "b"}},
    "podLabels": {"team": "agents"},
    "nodeSelector": {"disk": "fast"},
    "tolerations": [{"key": "a", "operator": "Exists"}],
    "affinity": {"nodeAffinity": {}},
    "priorityClassName": "high",
}


def rendered(values=None, name="threadkeep"):
    with helm.Chart.load(CHART) as chart:
        texts = chart.render(values or {}, name=name, namespace="threadkeep")
    objects = [yaml.safe_load(text) for path, text in texts.items() if path.endswith(".yaml")]
    return {manifest["kind"]: manifest for manifest in objects if manifest}


def kustomized():
    kustomization = yaml.safe_load((MANIFESTS / "kustomization.yaml").read_text())
    objects = {}
    for name in kustomization["resources"]:
        manifest = yaml.safe_load((MANIFESTS / name).read_text())
        manifest["metadata"]["namespace"] = kustomization["namespace"]
        objects[manifest["kind"]] = manifest
    image = kustomization["images"][0]
    container = objects["Deployment"]["spec"]["template"]["spec"]["containers"][0]
    container["image"] = f"{image['newName']}:{image['newTag']}"
    return objects


def plain(value):
    """Removes the labels that Helm adds."""
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items() if key not in HELM_LABELS}
    return [plain(each) for each in value] if isinstance(value, list) else value


def unlabelled(objects):
    """Removes the labels of the objects themselves, which no selector uses."""
    objects = plain(objects)
    for manifest in objects.values():
        manifest["metadata"].pop("labels", None)
    return objects


def check_same():
    ours, theirs = unlabelled(rendered()), unlabelled(kustomized())
    assert ours.keys() == theirs.keys(), ours.keys() ^ theirs.keys()
    for kind, manifest in theirs.items():
        assert ours[kind] == manifest, f"{kind} of the chart:\n{yaml.dump(ours[kind])}\nof the manifests:\n{yaml.dump(manifest)}"


def check_names():
    """Checks that two releases in one namespace do not share objects, and that the selectors of one release do not match the
    pods of the other release.
    """
    first, second = rendered(name="blue"), rendered(name="green")
    for kind, manifest in first.items():
        assert manifest["metadata"]["name"] == "blue-threadkeep", manifest
        assert second[kind]["metadata"]["name"] == "green-threadkeep", manifest
    pods = second["Deployment"]["spec"]["template"]["metadata"]["labels"]
    for selector in (
        first["Service"]["spec"]["selector"],
        first["Deployment"]["spec"]["selector"]["matchLabels"],
        first["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"],
    ):
        assert not selector.items() <= pods.items(), selector


def check_options(output):
    objects = rendered(OPTIONS)
    assert "HorizontalPodAutoscaler" not in objects
    deployment = objects["Deployment"]["spec"]
    pod, container = deployment["template"]["spec"], deployment["template"]["spec"]["containers"][0]
    assert deployment["replicas"] == 2
    assert container["image"] == "registry.example.com/threadkeep:1.2.3"
    variables = {each["name"]: each.get("value") for each in container["env"]}
    assert variables["THREADKEEP_RATE_NEW_THREADS"] == "60/1h" and variables["THREADKEEP_TRUSTED_PROXIES"] == "10.0.0.0/8"
    mounts = {each["name"]: each["mountPath"] for each in container["volumeMounts"]}
    assert mounts.keys() == {each["name"] for each in pod["volumes"]} == {"keys", "redis-tls"}
    for variable in ("CERT", "KEY"):
        assert variables[f"THREADKEEP_REDIS_TLS_{variable}_FILE"].startswith(mounts["redis-tls"])
    assert objects["Secret"]["metadata"]["name"] == pod["volumes"][0]["secret"]["secretName"]
    assert objects["Secret"]["stringData"] == {
        "redis-url": "redis://redis:6379", "signing": "a:1", "api": "b:2", "api-key-rights": "b:all",
    }  # fmt: skip
    # changed signing keys must change the pod template, so that the pods restart
    changed = rendered({**OPTIONS, "secret": {**OPTIONS["secret"], "signing": "c:3"}})
    assert changed["Deployment"]["spec"]["template"]["metadata"] != deployment["template"]["metadata"]
    pathlib.Path(output).write_text(yaml.dump_all([*objects.values(), rendered()["HorizontalPodAutoscaler"]]))


def check_rejected():
    for wrong in (
        {"unknown": 1},
        {"secret": {"crate": True}},
        {"workers": "many"},
        {"secret": {"create": True, "redisUrl": "redis://redis:6379", "api": "b:2"}},
    ):
        with helm.Chart.load(CHART) as chart:
            try:
                chart.validate_schema(wrong)
                chart.render(wrong, name="threadkeep", namespace="threadkeep")
            except helm.HelmError:
                continue
        raise AssertionError(f"accepted: {wrong}")


def main(output):
    report = helm.lint(CHART, strict=True)
    # a missing icon is reported with severity 1 (information)
    faults = [each for each in report["messages"] if each["severity"] > 1]
    assert report["total_charts_linted"] == 1 and not faults and not report["errors"], report
    check_same()
    check_names()
    check_options(output)
    check_rejected()
    print("the chart creates the same objects as the manifests")


main(*sys.argv[1:])
