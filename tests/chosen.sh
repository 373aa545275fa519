# Chosen tests. Other scripts source this file from the directory of the project.
#
# shellcheck shell=sh

# target_of NAME: prints the option of Cargo for the tests with this in their path: those of tests/it or of src.
target_of() {
    first=${1%%::*}
    if [ -e "tests/it/$first" ] || [ -e "tests/it/$first.rs" ]; then
        echo --test=it
    elif [ -e "src/$first" ] || [ -e "src/$first.rs" ]; then
        echo --lib
    elif grep -rqE "fn [a-z0-9_]*${1##*::}" tests/it; then
        echo --test=it
    else
        echo --lib
    fi
}

# test_chosen NAME...: runs the tests with one of these in their path. Fails if no test has.
test_chosen() {
    targets=$(for name; do target_of "$name"; done | sort -u)
    # shellcheck disable=SC2086 # words
    set -- cargo test --quiet --locked --workspace $targets -- "$@"
    "$@" --list | grep -q ': test$' || {
        echo "no test has this in its path: $*" >&2
        return 1
    }
    "$@"
}
