//! Tests that the statistics are correct, and that they use bounded memory under any load.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::time::Duration;

use super::*;
use threadkeep_domain::ThreadId;

const BYTES_PER_WORKER: u64 = 1_800_000;

fn id(number: u64) -> ThreadId {
    ThreadId::from_entropy((u128::from(number) * 0x9e37_79b9_7f4a_7c15).to_be_bytes())
}

fn call<'a>(id: &'a ThreadId, is_write: bool, bytes: u64, ended: Instant) -> Call<'a> {
    Call {
        kind: 0,
        ended,
        took: Duration::from_micros(100),
        has_failed: false,
        used: Some(Use {
            id,
            is_write,
            bytes,
            state_bytes: Some(bytes),
        }),
    }
}

/// Zipf-distributed numbers below a million. The share of rank n is proportional to 1/n.
struct Skewed(u64);

impl Skewed {
    fn random(&mut self) -> f64 {
        // xorshift64; the upper bits are used
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }
}

impl Iterator for Skewed {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        Some(1_000_000_f64.powf(self.random()) as u64)
    }
}

#[test]
fn the_busiest_of_a_million_threads_are_listed_in_fixed_memory() {
    let stats = Stats::default();
    let workers = [stats.store_recorder(), stats.store_recorder()];
    let (mut writes, mut reads) = (HashMap::new(), HashMap::new());
    let start = stats.0.clock.started;
    let mut skewed = Skewed(0x2545_f491_4f6c_dd1d);
    // uses each of a million threads once within 90 s, interleaved with a million skewed uses
    let mut load = Vec::with_capacity(2_000_000);
    for number in 0..1_000_000 {
        load.extend([number, skewed.next().unwrap()]);
    }
    let moment = |index: usize| start + Duration::from_secs(index as u64 / 22_222);
    let is_write = |index: usize| index % 8 < 2;
    let now = moment(load.len());
    let first = stats.0.clock.slot(now) - 5;

    let measured = allocation_counter::measure(|| {
        for (index, number) in load.iter().enumerate() {
            let is_write = is_write(index);
            let id = id(*number);
            workers[index / 2 % 2].record(&call(&id, is_write, *number, moment(index)));
        }
    });

    for (index, number) in load.iter().enumerate() {
        if stats.0.clock.slot(moment(index)) >= first {
            let counts = if is_write(index) {
                &mut writes
            } else {
                &mut reads
            };
            *counts.entry(*number).or_insert(0_u64) += 1;
        }
    }
    let report = stats.report_at(now);
    let ThreadLists {
        by_writes,
        by_reads,
        ..
    } = report.threads;
    for (listed, counts) in [(by_writes, writes), (by_reads, reads)] {
        let mut highest: Vec<u64> = counts.values().copied().collect();
        highest.sort_unstable_by_key(|count| Reverse(*count));
        let counts: HashMap<_, _> = counts
            .iter()
            .map(|(number, count)| (id(*number), *count))
            .collect();
        assert_eq!(listed.len(), 20);
        for (busy, highest) in listed.iter().zip(highest) {
            let exact = counts[&busy.id];
            assert!(busy.count <= exact, "no count is too high");
            // threads with counts this close may swap ranks
            for count in [busy.count, exact] {
                assert!(
                    count.abs_diff(highest) * 20 <= highest,
                    "{count} of {highest}"
                );
            }
        }
    }
    assert!(
        measured.bytes_max <= workers.len() as u64 * BYTES_PER_WORKER,
        "{} bytes",
        measured.bytes_max
    );
}
