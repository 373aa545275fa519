"""Checks a Grafana dashboard against running replicas: dashboard.py DASHBOARD PROMETHEUS REPLICA...

Each panel must have its own description. For each query, a replica must export the metric with the labels and label values
that the query names. PROMETHEUS must scrape these replicas, and answer each query with the labels in the query's legend.
"""

import json
import re
import sys
import urllib.parse
import urllib.request
from collections import defaultdict

import promql_parser as promql

# the labels that Prometheus adds to each sample; Prometheus's own metric `up` has only these labels
TARGET = {"instance", "job"}
SAMPLE = re.compile(r"^([a-z_:]+)(?:\{(.*)\})? \S+$")
LABEL = re.compile(r'([a-z_]+)="((?:[^"\\]|\\.)*)"')
VARIABLES = {"$__rate_interval": "20s", "$__range": "60s", "$replica": ".*", "$part": ".*"}


def get(url):
    with urllib.request.urlopen(url, timeout=120) as answer:
        return answer.read().decode()


def exported(replicas):
    """Returns a map from each metric that a replica exports to its labels, and from each label to its values."""
    metrics = defaultdict(lambda: defaultdict(set))
    for replica in replicas:
        for line in get(f"{replica}/metrics").splitlines():
            if sample := SAMPLE.match(line):
                labels = metrics[sample[1]]
                for name, value in LABEL.findall(sample[2] or ""):
                    labels[name].add(value)
    metrics["up"]
    return metrics


def selectors(node):
    """Yields the selectors in an expression, and for each aggregation, its labels and selectors."""
    match node:
        case promql.VectorSelector():
            yield "selector", node
        case promql.MatrixSelector():
            yield "selector", node.vector_selector
        case promql.Call():
            for argument in node.args:
                yield from selectors(argument)
        case promql.BinaryExpr():
            if node.modifier and node.modifier.matching:
                raise ValueError("the labels of `on` and `ignoring` are not checked")
            yield from selectors(node.lhs)
            yield from selectors(node.rhs)
        case promql.AggregateExpr():
            inner = list(selectors(node.expr))
            yield from inner
            if node.modifier:
                yield "labels", (node.modifier.labels, inner)
        case promql.ParenExpr() | promql.UnaryExpr() | promql.SubqueryExpr():
            yield from selectors(node.expr)
        case promql.NumberLiteral() | promql.StringLiteral():
            pass
        case _:
            raise ValueError(f"{type(node).__name__} is not checked")


def faults_of(expression, metrics):
    """Yields the faults of an expression. `metrics` has the exported metrics."""
    for kind, value in selectors(promql.parse(expression)):
        if kind == "labels":
            labels, inner = value
            names = [selector.name for inner_kind, selector in inner if inner_kind == "selector"]
            for label in labels:
                if label not in TARGET and not any(label in metrics.get(name, ()) for name in names):
                    yield f"{' and '.join(names)} have no label {label}"
            continue
        if value.name not in metrics:
            yield f"no replica exports {value.name}"
            continue
        labels = metrics[value.name]
        for matcher in value.matchers.matchers:
            if matcher.name in TARGET:
                continue
            if matcher.name not in labels:
                yield f"{value.name} has no label {matcher.name}"
            elif matcher.op == promql.MatchOp.Equal and matcher.value not in labels[matcher.name]:
                yield f"{value.name} is never {matcher}"


def evaluate(prometheus, expression, legend):
    query = urllib.parse.urlencode({"query": expression})
    answer = json.loads(get(f"{prometheus}/api/v1/query?{query}"))
    series = answer["data"]["result"]
    if not series:
        yield "the result is empty"
    for label in re.findall(r"\{\{(\w+)\}\}", legend):
        if not any(label in each["metric"] for each in series):
            yield f"the legend names {label}, which is no label of the result"


def queries(dashboard):
    """Yields the title, expression and legend of each query. The variables come first."""
    for variable in dashboard["templating"]["list"]:
        metric, label = re.fullmatch(r"label_values\((\w+), (\w+)\)", variable["definition"]).groups()
        yield f"${variable['name']}", f"count by ({label}) ({metric})", f"{{{{{label}}}}}"
    described = {}
    for panel in dashboard["panels"]:
        if panel["type"] != "row":
            assert panel["description"], panel["title"]
            first = described.setdefault(panel["description"], panel["title"])
            assert first == panel["title"], f"{first} and {panel['title']} have the same description"
        for target in panel.get("targets", ()):
            assert target["datasource"]["uid"] == "prometheus", panel["title"]
            yield panel["title"], target["expr"], target["legendFormat"]


def main(path, prometheus, *replicas):
    with open(path, encoding="utf-8") as file:
        dashboard = json.load(file)
    metrics = exported(replicas)
    fault_count = query_count = 0
    for title, expression, legend in queries(dashboard):
        query_count += 1
        for variable, value in VARIABLES.items():
            expression = expression.replace(variable, value)
        faults = list(faults_of(expression, metrics)) or list(evaluate(prometheus, expression, legend))
        for fault in faults:
            print(f"dashboard: {title}: {fault}: {expression}", file=sys.stderr)
        fault_count += len(faults)
    if fault_count or not query_count:
        sys.exit(1)
    print(f"dashboard: {query_count} queries ask for existing metrics")


main(*sys.argv[1:])
