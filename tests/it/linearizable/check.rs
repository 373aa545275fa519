use std::collections::{BTreeMap, HashMap};
use std::time::Instant;

use threadkeep_domain::Life;

use super::contents::compare;
use super::history::{Event, History, Interval, Read, Written};

/// Counts the comparisons of each kind. A test asserts that each count is above 0.
#[derive(Debug, Default)]
pub(super) struct Checked {
    /// Number of reads that began after a write was acknowledged, and therefore had to show that write or a later one.
    pub(super) bounded: usize,
    pub(super) compared: BTreeMap<&'static str, usize>,
    pub(super) derived: usize,
    pub(super) conditional: usize,
}

impl std::ops::AddAssign for Checked {
    fn add_assign(&mut self, other: Self) {
        self.bounded += other.bounded;
        self.derived += other.derived;
        self.conditional += other.conditional;
        for (kind, count) in other.compared {
            *self.compared.entry(kind).or_default() += count;
        }
    }
}

pub(super) fn check(history: &History, may_fail: bool) -> Checked {
    let reads = history.reads.lock().unwrap();
    let writes = history.writes.lock().unwrap();
    let events = history.events.lock().unwrap();
    let mut checked = Checked::default();
    let lives = first_seen(&reads, &writes);
    for read in reads.iter() {
        checked.bounded += usize::from(is_bounded(read, &writes, &events));
        assert_life_not_ended(read, &lives, &events);
    }
    compare(&reads, &writes, &events, may_fail, &mut checked);
    checked
}

/// Asserts that `read` shows the newest version that was acknowledged before the read began, or a later version.
/// Ignores writes before the thread ended or Redis lost data. Returns false if there is no write to compare with.
fn is_bounded(read: &Read, writes: &[Written], events: &[(Interval, Event)]) -> bool {
    let cuts = events
        .iter()
        .filter(|(at, event)| *event != Event::Failover && at.start < read.at.end);
    let cut = cuts.map(|(at, _)| at.end).max();
    let before = writes
        .iter()
        .filter(|write| write.at.is_before(&read.at) && cut.is_none_or(|cut| write.at.start > cut));
    let Some(last) = before.max_by_key(|write| write.stamp.version) else {
        return false;
    };
    let Some((stamp, _)) = &read.found else {
        panic!("a written thread is missing: {last:?}, {read:?}");
    };
    let is_current = stamp.life == last.stamp.life && stamp.version >= last.stamp.version;
    assert!(is_current, "a write is missing: {last:?}, {read:?}");
    true
}

fn first_seen(reads: &[Read], writes: &[Written]) -> HashMap<Life, Instant> {
    let read = reads
        .iter()
        .filter_map(|read| Some((read.found.as_ref()?.0.life, read.at.end)));
    let written = writes.iter().map(|write| (write.stamp.life, write.at.end));
    let mut lives = HashMap::new();
    for (life, end) in read.chain(written) {
        let first = lives.entry(life).or_insert(end);
        *first = end.min(*first);
    }
    lives
}

/// Asserts that `read` does not show a life (an incarnation of the thread) that had ended before the read began.
fn assert_life_not_ended(
    read: &Read,
    first_seen: &HashMap<Life, Instant>,
    events: &[(Interval, Event)],
) {
    let Some((stamp, _)) = &read.found else {
        return;
    };
    let ends = events.iter().filter(|(_, event)| *event == Event::End);
    let Some((end, _)) = ends
        .filter(|(at, _)| at.is_before(&read.at))
        .max_by_key(|(at, _)| at.start)
    else {
        return;
    };
    let began_before_the_end = first_seen[&stamp.life] < end.start;
    assert!(
        !began_before_the_end,
        "a life that had ended: {end:?}, {read:?}"
    );
}
