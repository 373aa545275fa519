#!/bin/sh
# Validates the manifests in deploy/kubernetes against the Kubernetes schemas. Starts the server with the environment
# variables in the manifests, and calls the probes. Uses Helm's library to check that the chart in deploy/helm creates
# the same objects.
#
# Needs python3 with venv. tests/packages.sh installs the validator and, only on x86-64, Helm.
set -eu

cd "$(dirname "$0")/.."
# shellcheck source=tests/server.sh
. tests/server.sh

chart=
case $(uname -m) in
x86_64)
    install_python kubernetes-validate==1.37.0 helm-python-sdk==0.2.2
    chart=$dir/chart.yaml
    "$venv/bin/python" tests/helm.py "$chart"
    ;;
*)
    echo 'the chart: skipped, Helm is available only for x86-64'
    install_python kubernetes-validate==1.37.0
    ;;
esac
# the oldest and newest supported releases that have every feature that the manifests use
for release in 1.31 1.37; do
    "$venv/bin/kubernetes-validate" --strict --kubernetes-version "$release" --quiet \
        deploy/kubernetes/deployment.yaml deploy/kubernetes/service.yaml \
        deploy/kubernetes/disruption-budget.yaml deploy/kubernetes/autoscaler.yaml ${chart:+"$chart"}
done
[ -n "${THREADKEEP_BIN:-}" ] || cargo build --quiet --locked --workspace
start_redis
"$venv/bin/python" tests/kubernetes.py "$program" "$dir"
