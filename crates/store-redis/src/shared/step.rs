use std::time::Duration;

use bytes::Bytes;

use crate::shared::{bounded_ms, turn};
use crate::transport::Command;
use threadkeep_domain::scope::ScopeId;
use threadkeep_store::response_ttl;
use threadkeep_store::{EndResponse, JournalEntry};

pub(crate) struct StepOfResponse<'a> {
    pub(crate) key: String,
    pub(crate) channel: &'a str,
    pub(crate) scope: &'a ScopeId,
    pub(crate) step: Step<'a>,
    pub(crate) archive: Duration,
}

pub(crate) enum Step<'a> {
    Entry(&'a JournalEntry<'a>),
    End(&'a EndResponse<'a>),
}

impl StepOfResponse<'_> {
    /// Like [`Self::add_to`], followed by the number of arguments added.
    pub(crate) fn add_counted_to(&self, cmd: &mut Command) {
        let before = cmd.count();
        self.add_to(cmd);
        cmd.arg(cmd.count() - before);
    }

    pub(crate) fn add_to(&self, cmd: &mut Command) {
        cmd.arg(self.channel);
        match &self.step {
            Step::Entry(entry) => {
                cmd.arg(entry.token.0)
                    .arg(self.scope.to_string())
                    .arg(entry.number)
                    .arg(&entry.entry[..])
                    .arg("")
                    .arg("");
                add_events(cmd, entry.events);
            }
            Step::End(end) => {
                cmd.arg(turn(end.token))
                    .arg(self.scope.to_string())
                    .arg(end.entries)
                    .arg(&end.answer[..])
                    .arg(bounded_ms(response_ttl(self.scope, end.kept, self.archive)))
                    .arg(bounded_ms(end.events_kept));
                add_events(cmd, end.events);
            }
        }
    }
}

fn add_events(cmd: &mut Command, (first, events): (u64, &[Bytes])) {
    cmd.arg(first).args(events.iter().map(|event| &event[..]));
}
