# Runs the tests of checkpointers that LangGraph publishes.
#
# shellcheck shell=sh
PYTHONPATH=$PWD/tests "$PYTHON" tests/adapters/langgraph/conformance.py
