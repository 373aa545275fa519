use std::collections::BTreeMap;

use reqwest::Method;
use serde_json::value::RawValue;

use super::{LIST, Story};
use crate::answer::{Answer, Wrong};
use crate::ask::Ask;
use crate::http::Http;
use crate::push_id::{PushId, PushValueError};

impl Story {
    /// Compares the content with the writes, and destroys the thread. Returns true if the thread was destroyed. If
    /// answers contain thread ids, the answer must also contain a new id.
    pub(crate) async fn close(mut self, http: &mut Http<'_>) -> bool {
        if !self.is_written {
            // the id of the thread may be unknown
            return false;
        }
        let id = self.thread_ref.about();
        let id = id.as_deref().unwrap_or("a thread without an id").to_owned();
        let settled = self.verify(http, &id).await;
        if settled {
            http.run.account.count(|tally| tally.threads_verified += 1);
        } else {
            let comparison = self.pushes.compare_by_reads(false);
            http.run.account.settle(http.scenario(), &id, &comparison);
            http.note_unverified(&id);
        }
        let ask = self.ask(Method::DELETE, "destroy a thread", "");
        let thread_ref = &self.thread_ref;
        let check = |answer: &Answer| {
            answer.expect(204)?;
            if thread_ref.is_named_in_answers() && answer.thread()? == id {
                return Err(Wrong::new("the id of a destroyed thread", id.as_str()));
            }
            Ok(())
        };
        // if this fails, the thread expires
        http.ask_once(&ask, check).await.is_ok()
    }

    /// Checks the stored state against the expected state. Returns false if the stored state could not be read.
    async fn verify(&mut self, http: &mut Http<'_>, id: &str) -> bool {
        // any replica can read the thread
        let thread_ref = self.thread_ref.for_any_replica();
        let ask = Ask::of(Method::GET, "verify a state", &thread_ref, "/state");
        let expected = self.state.text();
        let open = self.open.as_ref().map(|ops| {
            let mut state = self.state.clone();
            for op in ops {
                state.apply(op);
            }
            state.text()
        });
        let check = |answer: &Answer| {
            answer.expect(200)?;
            Ok((answer.text()?.to_owned(), answer.tag()?.version))
        };
        let Ok((text, version)) = http.ask(&ask, check).await else {
            return false;
        };
        let latest = self.version + u64::from(self.open.is_some());
        if !self.is_broken && !(self.version..=latest).contains(&version) {
            let detail = format!("{version} instead of {}", self.version);
            http.note_wrong(&ask, &Wrong::new("version at the end", detail));
        }
        if text == expected || open.as_ref() == Some(&text) {
            self.pushes.mark_all_read();
            let comparison = self.pushes.compare_by_reads(text != expected);
            http.run.account.settle(http.scenario(), id, &comparison);
            return true;
        }
        let comparison = self.pushes.compare(&push_ids(&http.run.id, &text));
        http.run.account.settle(http.scenario(), id, &comparison);
        http.note_wrong(&ask, &difference(&expected, &text));
        true
    }
}

fn push_ids(run: &str, state: &str) -> Vec<Result<PushId, PushValueError>> {
    let lists: BTreeMap<&str, &RawValue> = serde_json::from_str(state).unwrap_or_default();
    let list = lists.get(LIST).map_or("[]", |list| list.get());
    let elements: Vec<&RawValue> = serde_json::from_str(list).unwrap_or_default();
    let push_id = |element: &&RawValue| PushId::of(run, element.get());
    elements.iter().map(push_id).collect()
}

fn difference(expected: &str, found: &str) -> Wrong {
    let same = expected.bytes().zip(found.bytes());
    let offset = same.take_while(|(a, b)| a == b).count();
    let part = |text: &str| {
        let bytes = text.as_bytes();
        let end = bytes.len().min(offset + 60);
        String::from_utf8_lossy(&bytes[offset.min(end)..end]).into_owned()
    };
    let detail = format!(
        "{} bytes instead of {}, and from byte {offset} on {:?} instead of {:?}",
        found.len(),
        expected.len(),
        part(found),
        part(expected)
    );
    Wrong::new("the state is not what was written", detail)
}
