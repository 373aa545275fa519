use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

/// A reproducible source of random numbers. Each case has its own source, so it can run without the preceding cases.
#[derive(Debug)]
pub(super) struct Dice(StdRng);

impl Dice {
    pub(super) fn new(seed: u64, index: u64) -> Self {
        // the generator scrambles its seed, so consecutive indices give unrelated sequences
        let mut seeds = StdRng::seed_from_u64(seed);
        let own: u64 = seeds.random();
        Self(StdRng::seed_from_u64(own ^ index))
    }

    pub(super) fn below(&mut self, end: usize) -> usize {
        self.0.random_range(0..end)
    }

    pub(super) fn between(&mut self, first: i64, last: i64) -> i64 {
        self.0.random_range(first..=last)
    }

    pub(super) fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }

    pub(super) fn pick<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }

    pub(super) fn word<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all[self.below(all.len())]
    }

    pub(super) fn bytes<'a>(&mut self, all: &[&'a [u8]]) -> &'a [u8] {
        all[self.below(all.len())]
    }

    pub(super) fn length(&mut self) -> usize {
        match self.below(2_000) {
            0 => self.below(2_500_000),
            1..10 => self.below(300_000),
            10..100 => self.below(20_000),
            _ => self.below(300),
        }
    }

    pub(super) fn bits(&mut self) -> u64 {
        self.0.random()
    }

    pub(super) fn seed(&mut self) -> [u8; 32] {
        self.0.random()
    }
}
