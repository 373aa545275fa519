//! States of several hundred KiB, below the size limit. They are written in parts, and read in parts and as a whole.

use reqwest::Method;

use crate::agent::Agent;
use crate::answer::{Answer, Wrong, same};
use crate::ask::Ask;
use crate::http::Http;
use crate::push_id::Text;
use crate::run::Run;
use crate::state::Op;
use crate::story::{Ended, Story, quoted};

/// Number of keys, and size of each value in bytes. The values have a total size of 320 KiB.
const DOCUMENTS: u32 = 20;
const DOCUMENT_BYTES: usize = 16 * 1024;
/// Size of a value that, together with the other values, exceeds the limit of 1,048,576 bytes for a state.
const TOO_LARGE_BYTES: usize = 1_000_000;
const ROUNDS: u32 = 30;

#[derive(Debug, Default)]
pub(crate) struct Large {
    story: Option<Story>,
    rounds: u32,
}

impl Agent for Large {
    const NAME: &'static str = "large";

    fn new(_run: &Run) -> Self {
        Self::default()
    }

    async fn step(&mut self, http: &mut Http<'_>) {
        if self.story.is_none() {
            let first: Vec<_> = (0..DOCUMENTS)
                .map(|number| Op::Set {
                    key: key(number),
                    value: document(number),
                })
                .collect();
            self.story = Story::create(http, &first, false).await.ok();
            self.rounds = 0;
        }
        let Some(story) = &mut self.story else {
            return;
        };
        let round = round(story, http, self.rounds).await;
        self.rounds += 1;
        if round.is_err() || self.rounds == ROUNDS {
            self.finish(http).await;
        }
    }

    async fn finish(&mut self, http: &mut Http<'_>) {
        if let Some(story) = self.story.take() {
            story.close(http).await;
        }
    }
}

fn key(number: u32) -> String {
    format!("document{}", number % DOCUMENTS)
}

fn document(number: u32) -> Text {
    let line = format!("{number:0>62} \\n");
    quoted(&line.repeat(DOCUMENT_BYTES / line.len()))
}

async fn round(story: &mut Story, http: &mut Http<'_>, number: u32) -> Result<(), Ended> {
    let ask = story.ask(Method::GET, "read a large state", "/state");
    let check_state = |story: &Story, answer: &Answer| {
        answer.expect(200)?;
        same_text("a large state", answer.text()?, &story.state().text())
    };
    story.read(http, &ask, check_state).await?;

    let op = Op::Set {
        key: key(number),
        value: document(number + DOCUMENTS),
    };
    set(story, http, op, "write a document").await?;
    let small = Op::Set {
        key: "place".into(),
        value: number.to_string().into(),
    };
    set(story, http, small, "write a small key").await?;

    read_two(story, http, number).await?;
    if number.is_multiple_of(3) {
        patch(story, http, number).await?;
    }
    if number % 10 == 9 {
        write_too_large_value(story, http).await?;
    }
    Ok(())
}

async fn set(
    story: &mut Story,
    http: &mut Http<'_>,
    op: Op,
    name: &'static str,
) -> Result<(), Ended> {
    let Op::Set { key, value } = &op else {
        unreachable!("it is a set");
    };
    let ask = story.ask(Method::PUT, name, &format!("/state/{key}"));
    let ask = ask.body(&**value).once(http.run);
    story.write(http, &ask, vec![op], None).await
}

/// Reads two keys, then repeats the read with the received entity tag, and expects a 304 without content.
async fn read_two(story: &mut Story, http: &mut Http<'_>, number: u32) -> Result<(), Ended> {
    let (one, other) = (key(number), key(number + 1));
    let path = format!("/state?key={one}&key={other}");
    let ask = story.ask(Method::GET, "read two keys", &path);
    let check_values = |story: &Story, answer: &Answer| {
        answer.expect(200)?;
        let member = |key: &str| {
            let value = story.state().value(key).unwrap_or_default();
            format!(r#""{key}":{value}"#)
        };
        let mut members = [member(&one), member(&other)];
        members.sort();
        let expected = format!("{{{}}}", members.join(","));
        same_text("two keys", answer.text()?, &expected)
    };
    story.read(http, &ask, check_values).await?;
    let ask = Ask {
        name: "read what is known",
        ..ask
    };
    let ask = ask.header("if-none-match", story.tag());
    let unchanged = |_: &Story, answer: &Answer| {
        answer.expect(304)?;
        same("body of a 304", answer.body.len(), 0)
    };
    story.read(http, &ask, unchanged).await
}

async fn patch(story: &mut Story, http: &mut Http<'_>, number: u32) -> Result<(), Ended> {
    let value: Text = format!(r#"[{number},1.0,{{"a":[]}}]"#).into();
    let body = format!(r#"{{"note":{value},"place":null}}"#);
    let ops = vec![
        Op::Set {
            key: "note".into(),
            value,
        },
        Op::Delete {
            key: "place".into(),
        },
    ];
    let ask = story.ask(Method::PATCH, "merge patch", "/state");
    let ask = ask.body_of("application/merge-patch+json", body);
    story.write(http, &ask.once(http.run), ops, None).await
}

/// Sends a write that exceeds the size limit, and expects a rejection. The next read verifies that nothing changed.
async fn write_too_large_value(story: &mut Story, http: &mut Http<'_>) -> Result<(), Ended> {
    let value = quoted(&"x".repeat(TOO_LARGE_BYTES));
    let mut after = story.state().clone();
    after.apply(&Op::Set {
        key: "huge".into(),
        value: Text::clone(&value),
    });
    let (size, attempted) = (story.state().size(), after.size());
    let ask = story.ask(Method::PUT, "write too much", "/state/huge");
    let ask = ask.body(&*value);
    let check = |answer: &Answer| {
        let problem = answer.problem(413, "state_too_large")?;
        same("size in a refusal", problem.size_bytes, Some(size))?;
        same(
            "attempted size in a refusal",
            problem.attempted_bytes,
            Some(attempted),
        )
    };
    story.expect_rejection(http, &ask, check).await
}

/// Like `same`, but omits the texts from the finding.
fn same_text(what: &'static str, found: &str, expected: &str) -> Result<(), Wrong> {
    if found == expected {
        return Ok(());
    }
    let detail = format!(
        "{} bytes that are not the {} expected ones",
        found.len(),
        expected.len()
    );
    Err(Wrong::new(what, detail))
}
