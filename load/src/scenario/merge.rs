//! Simulates a back end that only writes. It sends merges of several operations each, and repeats some of the merges.

use reqwest::Method;

use crate::agent::Agent;
use crate::http::Http;
use crate::run::Run;
use crate::state::Op;
use crate::story::{Ended, Story, quoted};

const MERGES: u32 = 200;
/// Every n-th merge is repeated after its answer.
const REPEATED: u32 = 20;

#[derive(Debug)]
pub(crate) struct Merge {
    story: Option<Story>,
    merges: u32,
    /// True if requests refer to threads by id, which requires an API key.
    by_id: bool,
}

impl Agent for Merge {
    const NAME: &'static str = "merge";

    fn new(run: &Run) -> Self {
        Self {
            story: None,
            merges: 0,
            by_id: run.next_writer().is_multiple_of(2),
        }
    }

    async fn step(&mut self, http: &mut Http<'_>) {
        if self.story.is_none() {
            let first = [Op::Set {
                key: "job".into(),
                value: quoted("started"),
            }];
            self.story = Story::create(http, &first, self.by_id).await.ok();
            self.merges = 0;
        }
        let Some(story) = &mut self.story else {
            return;
        };
        let merged = merge(story, http, self.merges).await;
        self.merges += 1;
        if merged.is_err() || self.merges == MERGES {
            self.finish(http).await;
        }
    }

    async fn finish(&mut self, http: &mut Http<'_>) {
        if let Some(story) = self.story.take() {
            story.close(http).await;
        }
    }
}

/// Merges a message, a counter, a key that is overwritten, and a key that is alternately set and deleted.
async fn merge(story: &mut Story, http: &mut Http<'_>, number: u32) -> Result<(), Ended> {
    let (push_id, push) = story.next_push(http.run, None);
    let mut ops = vec![
        push,
        Op::Increment {
            key: "tokens".into(),
            by: i64::from(number % 90) - 10,
        },
        Op::Set {
            key: format!("step{}", number % 10),
            value: quoted(&format!("{number:0>100}")),
        },
    ];
    let key = "lease".to_owned();
    ops.push(if number.is_multiple_of(3) {
        let value = quoted("taken");
        Op::Set { key, value }
    } else {
        Op::Delete { key }
    });
    let steps: Vec<_> = ops.iter().map(Op::json).collect();
    let body = format!(r#"{{"operations":[{}]}}"#, steps.join(","));
    let ask = story.ask(Method::PATCH, "merge", "/state");
    let ask = ask.body(body).once(http.run);
    story.write(http, &ask, ops, Some(push_id)).await?;
    if number % REPEATED == REPEATED - 1 {
        let again = crate::ask::Ask {
            name: "merge again",
            ..ask
        };
        story.repeat(http, &again).await?;
    }
    Ok(())
}
