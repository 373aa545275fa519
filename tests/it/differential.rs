//! Runs the same random lists of operations on several stores. Both Redis write scripts, the short and the long one,
//! must behave like the embedded store, which runs the Rust code of the domain crate.

use std::time::{Duration, Instant};

use proptest::strategy::Strategy;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};
use threadkeep_domain::ThreadPolicy;
use threadkeep_store::Clock;
use tokio::runtime::{Builder, Runtime};

use crate::conformance::room;
use crate::lists::{List, Outcome, Player, Step, list};
use crate::scope_lists;

/// Environment variable with the seed of the lists. To repeat a failed run, set it to the seed that the failure prints.
const SEED: &str = "THREADKEEP_TEST_SEED";
/// Environment variable that triples the number of lists if it is set to any value.
const ALL_LISTS: &str = "THREADKEEP_TEST_ALL_LISTS";

#[test]
fn the_reported_size_matches_the_state_after_any_list() {
    let clock = Clock::system();
    let memory = room::memory_by(clock.clone());
    check(1_000, &runtime(), &clock, |policy| {
        vec![Player::new(&memory, policy)]
    });
}

#[test]
fn memory_and_redis_agree_after_any_list() {
    let runtime = runtime();
    let clock = Clock::system();
    let memory = room::memory_by(clock.clone());
    let redis = runtime.block_on(room::redis_by(clock.clone()));
    check(4_000, &runtime, &clock, |policy| {
        vec![
            Player::new(&memory, policy),
            Player::new(&redis, policy),
            Player::new(&redis, policy).without_shortcuts(),
        ]
    });
}

#[test]
fn a_scope_in_memory_matches_the_reference_after_any_list() {
    let clock = Clock::system();
    let memory = room::memory_by(clock.clone());
    check_scopes(2_000, &runtime(), &clock, |list| {
        vec![
            scope_lists::Player::of_reference(&clock, list),
            scope_lists::Player::new(&memory, list),
        ]
    });
}

#[test]
fn a_scope_in_redis_matches_the_reference_after_any_list() {
    let runtime = runtime();
    let clock = Clock::system();
    let redis = runtime.block_on(room::redis_by(clock.clone()));
    check_scopes(2_000, &runtime, &clock, |list| {
        vec![
            scope_lists::Player::of_reference(&clock, list),
            scope_lists::Player::new(&redis, list),
        ]
    });
}

fn check(
    lists: u32,
    runtime: &Runtime,
    clock: &Clock,
    players: impl Fn(ThreadPolicy) -> Vec<Player>,
) {
    run(lists, list(), |list| {
        retry_if_slow(|| {
            let mut players = players(list.policy);
            runtime.block_on(play(&list, &mut players, clock))
        })
    });
}

fn check_scopes(
    lists: u32,
    runtime: &Runtime,
    clock: &Clock,
    players: impl Fn(&scope_lists::List) -> Vec<scope_lists::Player>,
) {
    run(lists, scope_lists::list(), |list| {
        retry_if_slow(|| {
            let mut players = players(&list);
            runtime.block_on(play_scopes(&list, &mut players, clock))
        })
    });
}

/// Runs a list on all stores. Retries if the stores disagree after a slow run, because they report times in steps of
/// five seconds, and the clock may have passed a step between two stores.
fn retry_if_slow(play: impl Fn() -> Result<(), TestCaseError>) -> Result<(), TestCaseError> {
    const SLOW: Duration = Duration::from_secs(2);
    for _ in 0..10 {
        let start = Instant::now();
        let outcome = play();
        if outcome.is_ok() || start.elapsed() < SLOW {
            return outcome;
        }
    }
    play()
}

/// Tests `lists_max` random lists if [`ALL_LISTS`] is set, otherwise a third as many.
fn run<S: Strategy>(
    lists_max: u32,
    strategy: S,
    test: impl Fn(S::Value) -> Result<(), TestCaseError>,
) {
    let seed = std::env::var(SEED).map_or_else(|_| rand::random(), |seed| seed.parse().unwrap());
    let config = Config {
        cases: if std::env::var_os(ALL_LISTS).is_some() {
            lists_max
        } else {
            lists_max / 3
        },
        failure_persistence: None,
        max_shrink_iters: 2_000,
        ..Config::default()
    };
    let mut runner = TestRunner::new_with_rng(config, rng(seed));
    if let Err(error) = runner.run(&strategy, test) {
        panic!("{error}\nto repeat these lists, set {SEED}={seed}");
    }
}

async fn play_scopes(
    list: &scope_lists::List,
    players: &mut [scope_lists::Player],
    clock: &Clock,
) -> Result<(), TestCaseError> {
    for (number, step) in list.steps.iter().enumerate() {
        if let scope_lists::Step::Advance(pause) = step {
            clock.advance(*pause);
        }
        let mut first = None;
        let is_last = number + 1 == list.steps.len();
        for player in &mut *players {
            let outcome = player.play(list, number).await;
            let seen = match list.reads_everything || is_last {
                true => Some(player.read_everything().await),
                false => None,
            };
            let observed = (outcome, seen);
            let first = first.get_or_insert_with(|| observed.clone());
            if observed != *first {
                let text = format!("step {number}: first {first:?}, then {observed:?}");
                return Err(TestCaseError::fail(text));
            }
        }
    }
    Ok(())
}

async fn play(list: &List, players: &mut [Player], clock: &Clock) -> Result<(), TestCaseError> {
    play_steps(list, players, clock).await?;
    let mut first = None;
    for player in &mut *players {
        let story = player.story().await.map_err(TestCaseError::fail)?;
        let first = first.get_or_insert_with(|| story.clone());
        if story != *first {
            let text = format!("first {first:#?}, then {story:#?}");
            return Err(TestCaseError::fail(text));
        }
    }
    Ok(())
}

async fn play_steps(
    list: &List,
    players: &mut [Player],
    clock: &Clock,
) -> Result<(), TestCaseError> {
    for (number, step) in list.steps.iter().enumerate() {
        if let Step::Advance(pause) = step {
            clock.advance(*pause);
        }
        let mut first = None;
        for player in &mut *players {
            let outcome = player.play(list, number).await;
            let state = player.state().await;
            check_size(number, &outcome, &state)?;
            let observed = (outcome, state);
            let first = first.get_or_insert_with(|| observed.clone());
            if observed != *first {
                let text = format!("step {number}: first {first:?}, then {observed:?}");
                return Err(TestCaseError::fail(text));
            }
        }
    }
    Ok(())
}

fn check_size(number: usize, outcome: &Outcome, state: &Outcome) -> Result<(), TestCaseError> {
    if let Outcome::Written {
        size_bytes,
        replayed: false,
        ..
    } = outcome
    {
        let Outcome::Read(Some((_, state))) = state else {
            return Err(TestCaseError::fail(format!("step {number} left no state")));
        };
        if state.len() as u64 != *size_bytes {
            let text = format!("step {number} reports {size_bytes} bytes for {state}");
            return Err(TestCaseError::fail(text));
        }
    }
    Ok(())
}

fn rng(seed: u64) -> TestRng {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_be_bytes());
    TestRng::from_seed(RngAlgorithm::ChaCha, &bytes)
}

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}
