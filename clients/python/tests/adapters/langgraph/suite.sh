# Runs the tests of checkpointers that LangGraph publishes.
PYTHONPATH=$PWD/tests "$PYTHON" tests/adapters/langgraph/conformance.py
