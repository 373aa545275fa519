use std::collections::BTreeMap;
use std::time::Duration;

use threadkeep_domain::{Document, Json, Life, Stamp, Thread, ThreadPolicy};

use super::check::Checked;
use super::history::{Change, Event, Interval, Read, Written};
use super::shown::Shown;

/// The number of earlier data losses and failovers, the life (incarnation of the thread), and the version number.
type VersionId = (usize, Life, u64);

#[derive(Default)]
struct Seen<'a> {
    write: Option<&'a Written>,
    shown: Vec<&'a Shown>,
}

#[derive(Default)]
struct Content {
    document: Option<Document>,
    metadata: Option<Json>,
    ttl: Option<Duration>,
    created_ms: Option<u64>,
}

/// Asserts that all reads of a version show the same content, which must result from applying the version's write to
/// the previous version, or to an empty thread if this is the first version.
pub(super) fn compare(
    reads: &[Read],
    writes: &[Written],
    events: &[(Interval, Event)],
    may_fail: bool,
    checked: &mut Checked,
) {
    let mut before: Option<(VersionId, Content)> = None;
    for (id, seen) in versions(reads, writes, events) {
        let (era, life, version) = id;
        assert!(may_fail || seen.write.is_some(), "no write made {id:?}");
        let predecessor = before.filter(|(before, _)| *before == (era, life, version - 1));
        let mut content = predecessor.map_or_else(Content::default, |(_, content)| content);
        match seen.write.map(|write| (write, &write.change)) {
            Some((write, Some(change))) => {
                if version == 1 {
                    content = Content::of_no_thread();
                }
                checked.derived += usize::from(content.document.is_some());
                checked.conditional += usize::from(change.precondition.is_some());
                assert_met(change, write.stamp);
                content.follow(change, write);
            }
            // the content is unknown until a read shows it
            Some((_, None)) | None => content = Content::default(),
        }
        content.shows(&seen, checked);
        before = Some((id, content));
    }
}

fn versions<'a>(
    reads: &'a [Read],
    writes: &'a [Written],
    events: &[(Interval, Event)],
) -> BTreeMap<VersionId, Seen<'a>> {
    let mut versions: BTreeMap<VersionId, Seen<'_>> = BTreeMap::new();
    let id_of = |at, Stamp { life, version }| Some((era(at, events)?, life, version));
    for write in writes {
        let Some(id) = id_of(&write.at, write.stamp) else {
            continue;
        };
        let previous = versions.entry(id).or_default().write.replace(write);
        assert!(
            previous.is_none(),
            "one version for two: {previous:?} {write:?}"
        );
    }
    for read in reads {
        if let Some((stamp, shown)) = &read.found
            && let Some(id) = id_of(&read.at, *stamp)
        {
            versions.entry(id).or_default().shown.push(shown);
        }
    }
    versions
}

/// Asserts that the version before a conditional write met the condition.
fn assert_met(change: &Change, stamp: Stamp) {
    let before = match stamp.version - 1 {
        0 => Stamp::default(),
        version => Stamp { version, ..stamp },
    };
    let is_met = change
        .precondition
        .is_none_or(|precondition| precondition.is_met_by(before));
    assert!(is_met, "{change:?} made {stamp}");
}

impl Content {
    fn of_no_thread() -> Self {
        Self {
            document: Some(Document::default()),
            metadata: Some(Json::empty_object()),
            ttl: Some(ThreadPolicy::THREAD.ttl),
            created_ms: None,
        }
    }

    fn follow(&mut self, change: &Change, write: &Written) {
        if let Some(document) = &mut self.document {
            let answers = document
                .apply(&change.operations, &ThreadPolicy::THREAD)
                .unwrap();
            assert_eq!(answers, write.answers, "{write:?}");
        }
        self.metadata = change.metadata.clone().or(self.metadata.take());
        self.ttl = change.ttl.or(self.ttl);
    }

    /// Takes unknown parts of the content from the reads in `seen`, and asserts that every read shows the same content.
    fn shows(&mut self, seen: &Seen<'_>, checked: &mut Checked) {
        for shown in &seen.shown {
            self.learn(shown);
        }
        let json = self.document.as_ref().map(Document::to_json);
        for shown in &seen.shown {
            if let (Some(document), Some(json)) = (&self.document, &json) {
                let is_equal = shown.matches(document, json);
                assert!(is_equal, "{shown:?} of {document:?} {:?}", seen.write);
                *checked.compared.entry(shown.kind()).or_default() += 1;
            }
            if let (Some(metadata), Some(shown)) = (&self.metadata, shown.metadata()) {
                assert_eq!(metadata, shown, "{:?}", seen.write);
            }
        }
        let mut threads = seen.shown.iter().filter_map(|shown| shown.thread());
        let Some(first) = threads.next() else {
            return;
        };
        assert_eq!(self.ttl.unwrap_or(first.ttl), first.ttl, "{:?}", seen.write);
        let created_ms = *self.created_ms.get_or_insert(first.created_ms);
        assert_eq!(created_ms, first.created_ms, "{first:?}");
        for thread in threads {
            let expires_ms = thread.expires_ms;
            let first = Thread {
                expires_ms,
                ..first.clone()
            };
            assert_eq!(first, *thread, "two threads of one version");
        }
    }

    fn learn(&mut self, shown: &Shown) {
        if let (None, Some(state)) = (&self.document, shown.state()) {
            let text = std::str::from_utf8(state).unwrap();
            self.document = Some(Document::parse(text).unwrap());
        }
        if self.metadata.is_none() {
            self.metadata = shown.metadata().cloned();
        }
        if self.ttl.is_none() {
            self.ttl = shown.thread().map(|thread| thread.ttl);
        }
    }
}

/// Returns the number of data losses and failovers before `at`, or `None` if a loss or failover overlaps `at`.
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
