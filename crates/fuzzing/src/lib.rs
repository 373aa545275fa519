//! Fuzz tests for code that reads untrusted input.
//!
//! A fuzz target is a unit test next to the code that it covers. It can call private functions and, unlike cargo-fuzz,
//! needs no nightly compiler. The target calls [`fuzz`] with a name and a property. The property receives every file of
//! `tests/corpus/<name>`, then mutations of the files, some of them up to 200 kB long. It checks the result of the
//! code, and runs the code in [`Bound::hold`], which fails if the cost is out of proportion to the input size.
//!
//! A failing input is shrunk and written to the corpus as `failed-<digest>`. Give the file a better name and commit it
//! with the fix. The files are raw bytes, so other fuzzers can also read them.
//!
//! The default seed is fixed, so runs are repeatable. To search for bugs, use more rounds and other seeds:
//!
//! ```sh
//! FUZZ_ROUNDS=100000 FUZZ_SEED=$RANDOM cargo test --locked --workspace --lib fuzz:: -- --nocapture
//! ```

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot continue should panic"
)]

mod bound;
mod corpus;
mod input;
mod mutator;
mod shrink;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::str::FromStr;

use rand::SeedableRng as _;
use rand::rngs::StdRng;

pub use bound::{Bound, thread_time};
use corpus::Corpus;
pub use input::{Input, json};
use mutator::Mutator;

/// Number of inputs per target in a normal test run. All targets together take about 20 s on one core.
const ROUNDS: u64 = 1_000;
/// One in this many inputs is stretched to a large size. These inputs take as much time as all other inputs together.
const ROUNDS_PER_STRETCHED: u64 = 20;

/// Runs `property` on the corpus files of a target and on mutations of these files. If `property` panics, writes the
/// failing input to the corpus and panics.
pub fn fuzz(target: &str, property: impl Fn(Input<'_>)) {
    let fails =
        |input: &[u8]| catch_unwind(AssertUnwindSafe(|| property(Input::new(input)))).is_err();
    let corpus = Corpus::open(target);
    for (name, input) in corpus.files() {
        assert!(!fails(input), "{name} of the corpus fails");
    }

    let rounds = variable("FUZZ_ROUNDS").unwrap_or(ROUNDS);
    let seed = variable("FUZZ_SEED").unwrap_or(0);
    eprintln!("{target}: FUZZ_SEED={seed} FUZZ_ROUNDS={rounds}");
    let mut mutator = Mutator::new(StdRng::seed_from_u64(seed), corpus.inputs());
    for round in 0..rounds {
        let input = match round % ROUNDS_PER_STRETCHED {
            0 => mutator.stretched(),
            _ => mutator.mutated(),
        };
        if fails(&input) {
            let shrunk = shrink::shrink(input, fails);
            let path = corpus.add(&shrunk);
            // run once more, so that the last message printed is about the shrunk input
            fails(&shrunk);
            panic!("{target} failed in round {round}; the input is in {path}");
        }
    }
}

fn variable<T: FromStr>(name: &str) -> Option<T> {
    let text = std::env::var(name).ok()?;
    let value = text.parse().ok();
    Some(value.unwrap_or_else(|| panic!("{name} must be a whole number")))
}
