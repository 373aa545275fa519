#!/bin/sh
# Runs the load test through the balancer of scripts/cluster-local.sh. During the test, kills and restarts one replica,
# and stops a second replica. Checks that each acknowledged push is stored exactly once, and that a Prometheus server
# with deploy/prometheus.yml can answer the dashboard's queries.
#
# Needs the same programs as cluster-local.sh, plus prometheus and python3 with venv. Uses the load test in
# target/debug, which `cargo build -p threadkeep-load` builds.
set -eu

cd "$(dirname "$0")/.."
# shellcheck source=tests/cluster.sh
. tests/cluster.sh
# shellcheck source=tests/packages.sh
. tests/packages.sh

load=target/debug/threadkeep-load
[ -x "$load" ] || cargo build --quiet --locked --package threadkeep-load
install_python promql-parser==0.11.0
dashboard=deploy/grafana/dashboards/threadkeep.json

grep -q '^    uid: prometheus$' deploy/grafana/provisioning/datasources/*.yml ||
    fail "the dashboard's data source is not provisioned"

cluster_up

# Starts a separate server on the same store. It generates responses with a scripted model that reports token usage.
[ -n "${THREADKEEP_BIN:-}" ] || cargo build --quiet --locked --package threadkeep-scripted-upstream
echo '[{"calls": [{"name": "kv_increment", "arguments": "{\"key\":\"a/n\"}"}]}, {"text": "counted"}]' \
    >"$dir/script.json"
target/debug/scripted-upstream "$dir/script.json" >"$dir/upstream.txt" &
pids=$!
until_it grep -q '^http' "$dir/upstream.txt"
env -i THREADKEEP_LISTEN="127.0.0.5:$replica_port" THREADKEEP_REDIS_URL="unix://$cluster/redis.sock" \
    THREADKEEP_SIGNING_KEYS_FILE="$cluster/keys/signing" THREADKEEP_API_KEYS_FILE="$cluster/keys/api" \
    THREADKEEP_UPSTREAMS="main openai-chat $(head -n 1 "$dir/upstream.txt")" \
    THREADKEEP_UPSTREAM_KEYS="main:$(tail -n 1 "$dir/upstream.txt")" THREADKEEP_MODELS="counting main" \
    "$THREADKEEP_BIN" >"$dir/models.log" 2>&1 &
pids="$pids $!"
models=http://127.0.0.5:$replica_port
until_it answers 200 "$models/readyz"

# Uses the settings of docker-compose.yml, but with a shorter scrape interval. Lists the replicas instead of using DNS,
# because Prometheus can query DNS servers only on port 53.
cp deploy/alerts.yml "$dir"
sed -e 's/^\(  scrape_[a-z]*:\).*/\1 1s/' -e '/dns_sd_configs:/,$d' deploy/prometheus.yml >"$dir/prometheus.yml"
cat >>"$dir/prometheus.yml" <<END
    static_configs:
      - targets: [127.0.0.2:$replica_port, 127.0.0.3:$replica_port, 127.0.0.4:$replica_port, 127.0.0.5:$replica_port]
END
promtool check config "$dir/prometheus.yml" >"$dir/promtool.log" 2>&1 || fail "$(cat "$dir/promtool.log")"
prometheus --config.file="$dir/prometheus.yml" --storage.tsdb.path="$dir/prometheus" \
    --web.listen-address=127.0.0.1:0 >"$dir/prometheus.log" 2>&1 &
pids="$pids $!"
until_it grep -q 'Listening on' "$dir/prometheus.log"
prometheus=http://$(sed -n 's/.*"Listening on" address=//p' "$dir/prometheus.log")
until_it answers 200 "$prometheus/-/ready"

# the load test runs until the signal below
"$load" --host "$base" --users 20 --pause-ms 20 --seconds 3600 --tolerate-outages --report "$dir/report" \
    --api-key-file "$cluster/keys/api" >"$dir/load.log" 2>&1 &
load=$!
pids="$pids $load"
acknowledged() {
    sed -n 's/.* \([0-9]*\) pushes acknowledged.*/\1/p' "$dir/load.log" | tail -n 1
}
has_advanced() {
    [ "$(acknowledged)" -ge "$goal" ]
}
goal=100
until_it has_advanced

send KILL replica1
until_it grep -q 'Server ready/.*DOWN' "$cluster/log/balancer.log"
cluster_up
goal=$(($(acknowledged) + 100))
until_it has_advanced
send TERM replica2
await_end replica2
grep -q '"message":"stopped"' "$cluster/log/replica2.log" || fail "a replica did not stop by itself"
goal=$(($(acknowledged) + 100))
until_it has_advanced
kill -INT "$load"

wait "$load" || fail "the load test failed: $(cat "$dir/load.log")"
sed -n '/^GOOD/,$p' "$dir/load.log"
grep -q GOOD "$dir/report/mixed.html" || fail "the report does not contain the verdict"
python3 - "$dir/report/mixed.json" <<'END'
import json
import sys

with open(sys.argv[1], encoding="utf-8") as file:
    account = json.load(file)["account"]
pushes = account["pushes"]
assert pushes["acknowledged"] > 200, pushes
assert pushes["verified"] == pushes["acknowledged"], pushes
assert not any(pushes[kind] for kind in ("missing", "double", "strange", "unread")), pushes
assert account["threads_verified"] == account["threads"] > 0, account
assert not account["findings"], account
END

# Checks that all metrics in the dashboard exist. The check itself must report misspelled metrics, labels and values.
cluster_up
set -- "$prometheus" "http://127.0.0.2:$replica_port" "http://127.0.0.3:$replica_port" \
    "http://127.0.0.4:$replica_port" "$models"
# repeats an accepted and a rejected request for a response until Prometheus can compute the rates of both outcomes
secret=$(head -n 1 "$cluster/keys/api" | cut -d : -f 2)
thread=thrd_00000000000000000000000000000001
request_models() {
    path=$1
    shift
    curl -s -o "$dir/answer.json" -H "Authorization: Bearer $secret" -H 'Content-Type: application/json' \
        "$models$path" "$@"
}
request_models "/v1/threads/$thread/turn" -d '{"ttl_seconds": 600}'
memory='[{"type": "mcp", "server_label": "memory", "server_url": "threadkeep:memory"}]'
dashboard_answers() {
    request_models /v1/responses -d "{\"model\": \"counting\", \"input\": \"count\", \"tools\": $memory}" &&
        grep -q '"completed"' "$dir/answer.json" || return 1
    request_models /v1/responses -d "{\"model\": \"counting\", \"input\": \"count\", \"conversation\": \"$thread\"}" &&
        grep -q conversation_locked "$dir/answer.json" &&
        "$venv/bin/python" tests/dashboard.py "$dashboard" "$@" >"$dir/dashboard.log" 2>&1
}
until_it dashboard_answers "$@"
cat "$dir/dashboard.log"
misspelt() {
    sed "$1" "$dashboard" >"$dir/misspelt.json"
    ! cmp -s "$dashboard" "$dir/misspelt.json" || fail "nothing is misspelt by $1"
    shift
    ! "$venv/bin/python" tests/dashboard.py "$dir/misspelt.json" "$@" 2>"$dir/misspelt.log" ||
        fail "a misspelt dashboard was accepted"
}
misspelt s/threadkeep_http_requests_total/threadkeep_http_request_total/ "$@"
grep -q 'no replica exports threadkeep_http_request_total' "$dir/misspelt.log"
misspelt 's/sum by (route)/sum by (rout)/' "$@"
grep -q 'have no label rout' "$dir/misspelt.log"
misspelt 's/reason=/reaso=/' "$@"
grep -q 'threadkeep_threads_ended_total has no label reaso' "$dir/misspelt.log"
misspelt 's/"expired\\"/"expire\\"/' "$@"
grep -q 'is never' "$dir/misspelt.log"

echo "cluster: no acknowledged write was lost, and the dashboard queries only existing metrics"
