#!/bin/sh
# Holds the manifests of deploy/kubernetes to the schemas of Kubernetes, and what they say of the server to the
# server: it starts with their variables, and their probes find what they ask for.
#
#   tests/kubernetes.sh
#
# Needs python3 with venv; tests/packages.sh installs the validator.
set -eu

cd "$(dirname "$0")/.."
# shellcheck source=tests/server.sh
. tests/server.sh

install_python kubernetes-validate==1.37.0
# its oldest and newest release that has all that the manifests use
for release in 1.31 1.37; do
    "$venv/bin/kubernetes-validate" --strict --kubernetes-version "$release" --quiet \
        deploy/kubernetes/deployment.yaml deploy/kubernetes/service.yaml \
        deploy/kubernetes/disruption-budget.yaml deploy/kubernetes/autoscaler.yaml
done
[ -n "${THREADKEEP_BIN:-}" ] || cargo build --quiet --locked --workspace
start_redis
"$venv/bin/python" tests/kubernetes.py "$program" "$dir"
