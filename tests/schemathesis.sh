#!/bin/sh
# Sends thousands of unusual requests with schemathesis. Answers must match openapi.json. Server errors fail the test.
#
#   tests/schemathesis.sh [redis]  with a private redis-server
#   tests/schemathesis.sh memory   with the embedded store
#
# Needs python3 with venv; tests/packages.sh installs the tool.
set -eu

examples=${EXAMPLES:-50}
checks=not_a_server_error,status_code_conformance,content_type_conformance
checks=$checks,response_schema_conformance,response_headers_conformance
checks=$checks,unsupported_method,missing_required_header,negative_data_rejection,ignored_auth

cd "$(dirname "$0")/.."
# shellcheck source=tests/server.sh
. tests/server.sh

install_python schemathesis==4.32.5
start_server "${1:-redis}"

# skip event streams, because the tool would wait for them to end
streams='^get_(thread_)?events(_by_id)?$'

# Do not check the `Allow` header of these operations: their paths also match the path of an item or an entry, which
# allows more methods.
shared='(take|compact)_history(_by_id)?|list_segments(_by_id)?|(get|put)_entries'

export SCHEMATHESIS_HOOKS=schemathesis_hooks PYTHONPATH="$PWD/tests" PYTHONDONTWRITEBYTECODE=1

# run in a temporary directory, because the tool writes files to its working directory
cd "$dir"
odd_requests() {
    "$venv/bin/schemathesis" --no-color run "http://$address/openapi.json" \
        --header "Authorization: Bearer $api_key" \
        --phases examples,coverage,fuzzing \
        --max-examples "$examples" \
        --seed 1 \
        --generation-database none \
        --request-timeout 120 \
        --continue-on-failure \
        --suppress-health-check all \
        --exclude-tag openai --exclude-tag mcp \
        "$@"
}
odd_requests --checks "$checks,allow_header_conformance" --exclude-operation-id-regex "$streams|^($shared)\$"
odd_requests --checks "$checks" --include-operation-id-regex "^($shared)\$"
check_server
