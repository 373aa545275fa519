# Runs LangGraph's published tests for checkpointers.
#
# shellcheck shell=sh
PYTHONPATH=$PWD/tests "$PYTHON" tests/adapters/langgraph/conformance.py
