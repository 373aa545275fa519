//! Whether a history could have been seen by clients of one thread in one place.

use std::collections::HashMap;

use threadkeep::domain::{Document, Life, Policy, Stamp};

use super::history::{Event, History, Interval, Read, Written};

/// The number of comparisons, so that a test can tell whether anything was put to it.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Checked {
    /// Reads that began after a write was acknowledged that they had to show.
    pub(super) bounded: usize,
    /// Reads whose state was compared with another one of the same version.
    pub(super) compared: usize,
    /// Versions whose state was compared with what their write makes of the version before.
    pub(super) derived: usize,
}

impl std::ops::AddAssign for Checked {
    fn add_assign(&mut self, other: Self) {
        self.bounded += other.bounded;
        self.compared += other.compared;
        self.derived += other.derived;
    }
}

/// Checks the history of a thread.
pub(super) fn check(history: History) -> Checked {
    let reads = history.reads.into_inner().unwrap();
    let writes = history.writes.into_inner().unwrap();
    let events = history.events.into_inner().unwrap();
    let mut checked = Checked::default();
    for read in &reads {
        checked.bounded += usize::from(is_bounded(read, &writes, &events));
        shows_no_ended_life(read, &reads, &writes, &events);
    }
    compare_states(&reads, &writes, &events, &mut checked);
    checked
}

/// A read shows no version below one that was acknowledged before it began, unless an event came in between.
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
        panic!("a thread that was written is not there: {last:?}, {read:?}");
    };
    let is_current = stamp.life == last.stamp.life && stamp.version >= last.stamp.version;
    assert!(is_current, "a write is missing: {last:?}, {read:?}");
    true
}

/// A read shows no life that was over before it began.
fn shows_no_ended_life(
    read: &Read,
    reads: &[Read],
    writes: &[Written],
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
    let seen = reads
        .iter()
        .filter_map(|read| Some((&read.at, read.found.as_ref()?.0)));
    let written = writes.iter().map(|write| (&write.at, write.stamp));
    let mut lives = seen
        .chain(written)
        .filter(|(_, seen)| seen.life == stamp.life);
    let was_there = lives.any(|(at, _)| at.is_before(end));
    assert!(!was_there, "a life that had ended: {end:?}, {read:?}");
}

/// Everyone who sees a version sees the same state, and it is what its write makes of the version before.
fn compare_states(
    reads: &[Read],
    writes: &[Written],
    events: &[(Interval, Event)],
    checked: &mut Checked,
) {
    let mut states: HashMap<(usize, Life, u64), &str> = HashMap::new();
    for read in reads {
        let (Some((stamp, json)), Some(era)) = (&read.found, era(&read.at, events)) else {
            continue;
        };
        let known = states
            .entry((era, stamp.life, stamp.version))
            .or_insert(json);
        checked.compared += usize::from(!std::ptr::eq(*known, json.as_str()));
        assert_eq!(known, json, "two states of one version: {stamp:?}");
    }
    for write in writes {
        let Some(era) = era(&write.at, events) else {
            continue;
        };
        let Stamp { life, version } = write.stamp;
        let before = match version {
            1 => Some("{}"),
            _ => states.get(&(era, life, version - 1)).copied(),
        };
        let (Some(before), Some(after)) = (before, states.get(&(era, life, version))) else {
            continue;
        };
        checked.derived += 1;
        let mut document = Document::parse(before).unwrap();
        document.apply(&write.operations, &Policy::THREAD).unwrap();
        let json = String::from_utf8(document.to_json()).unwrap();
        assert_eq!(json, *after, "{write:?}");
    }
}

/// Between which events that lose something it was; none if during one.
fn era(at: &Interval, events: &[(Interval, Event)]) -> Option<usize> {
    let mut losses = events.iter().filter(|(_, event)| *event != Event::End);
    let overlaps = |loss: &Interval| !loss.is_before(at) && !at.is_before(loss);
    if losses.clone().any(|(loss, _)| overlaps(loss)) {
        return None;
    }
    Some(
        losses
            .by_ref()
            .filter(|(loss, _)| loss.is_before(at))
            .count(),
    )
}
