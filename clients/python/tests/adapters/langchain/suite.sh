# Runs the published tests of langchain-tests for stores and caches.
#
# shellcheck shell=sh
cp tests/adapters/langchain/published.py test_published.py
PYTHONPATH=$PWD/tests:$PWD/tests/adapters/langchain
export PYTHONPATH
"$PYTHON" -m pytest -q -p no:cacheprovider -p langchain_suite test_published.py
