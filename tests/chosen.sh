# Runs selected tests. Scripts source this file from the project's root directory.
#
# shellcheck shell=sh

# target_of NAME: prints Cargo's options for the test targets that contain NAME: tests/it, tests/contract, or the unit
# tests.
target_of() {
    first=${1%%::*}
    for target in tests/it:--test=it tests/contract:--test=contract src:--lib crates:--lib; do
        folder=${target%%:*}
        if [ -n "$(find "$folder" -name "$first" -o -name "$first.rs")" ]; then
            echo "${target#*:}"
        elif [ "$first" = "$1" ] && grep -rqE "fn [a-z0-9_]*$first" "$folder"; then
            echo "${target#*:}"
        fi
    done
}

# test_chosen NAME...: runs the tests whose path contains a NAME. Fails if no test matches.
test_chosen() {
    targets=$(for name; do target_of "$name"; done | sort -u)
    [ -n "$targets" ] || {
        echo "no test path contains: $*" >&2
        return 1
    }
    # tests/contract starts this program. With --workspace, Cargo builds it with the features that the tests need.
    cargo build --quiet --locked --workspace --bin threadkeep
    # shellcheck disable=SC2086 # words
    cargo test --quiet --locked --workspace $targets -- "$@"
}
