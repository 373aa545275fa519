//! Simulates a browser with a cookie that pushes messages to a list of limited length, and reads the newest messages.

use reqwest::{Client, ClientBuilder, Method};

use crate::account::Pushes;
use crate::agent::Agent;
use crate::answer::{Answer, Wrong, same};
use crate::http::Http;
use crate::run::Run;
use crate::state::Op;
use crate::story::{Ended, LIST, Story};
use crate::thread_ref::ThreadRef;

const WINDOW: usize = 50;
const TAIL: usize = 20;
/// Number of conversation turns per visitor, which is large enough for messages to drop out of the window.
const TURNS: u32 = 60;

#[derive(Debug, Default)]
pub(crate) struct Chat {
    story: Option<Story>,
    turns: u32,
}

impl Agent for Chat {
    const NAME: &'static str = "chat";

    fn new(_run: &Run) -> Self {
        Self::default()
    }

    /// Builds a client with its own cookie jar, like a browser.
    fn client(run: &Run) -> Option<ClientBuilder> {
        Some(
            Client::builder()
                .cookie_store(true)
                .timeout(run.timeout)
                .gzip(false),
        )
    }

    async fn step(&mut self, http: &mut Http<'_>) {
        if self.story.is_none() {
            let thread_ref = ThreadRef::Cookie {
                host: http.run.hosts.next().into(),
                received: None,
            };
            let pushes = Pushes::with_window(WINDOW);
            self.story = Some(Story::unwritten(http.run, thread_ref, pushes));
            self.turns = 0;
        }
        let Some(story) = &mut self.story else {
            return;
        };
        let turn = turn(story, http).await;
        self.turns += 1;
        if turn.is_err() || self.turns == TURNS {
            self.finish(http).await;
        }
    }

    async fn finish(&mut self, http: &mut Http<'_>) {
        let Some(story) = self.story.take() else {
            return;
        };
        // if closing failed, replaces the client, because its cookie jar may still contain the thread's id
        if !story.close(http).await
            && let Some(client) = Self::client(http.run)
        {
            http.renew(client).await;
        }
    }
}

async fn turn(story: &mut Story, http: &mut Http<'_>) -> Result<(), Ended> {
    for _ in 0..2 {
        let (push_id, op) = story.next_push(http.run, Some(WINDOW));
        let Op::Push { value, .. } = &op else {
            unreachable!("it is a push");
        };
        let path = format!("/state/{LIST}/push?max_records={WINDOW}");
        let ask = story.ask(Method::POST, "push a message", &path);
        let ask = ask.body(&**value);
        story.write(http, &ask, vec![op], Some(push_id)).await?;
    }
    let path = format!("/state/{LIST}?tail={TAIL}");
    let ask = story.ask(Method::GET, "read the tail", &path);
    story.read(http, &ask, check_tail).await?;
    story.mark_newest_read(TAIL);
    Ok(())
}

fn check_tail(story: &Story, answer: &Answer) -> Result<(), Wrong> {
    answer.expect(200)?;
    let found = answer.elements()?;
    let expected = story.state().tail(LIST, TAIL);
    same("messages of the tail", found.len(), expected.len())?;
    for (found, expected) in found.into_iter().zip(expected) {
        same("a message of the tail", found, expected)?;
    }
    let length = story.state().length(LIST);
    same(
        "length of the list",
        answer.number("x-total-count")?,
        length,
    )
}
