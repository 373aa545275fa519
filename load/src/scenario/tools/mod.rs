//! Tool calls by models, in the formats of two providers. The tools use the keys, counters and tasks of a scope.

mod memory;
mod notes;
mod provider;

use crate::agent::Agent;
use crate::http::Http;
use crate::run::Run;
use crate::story::Ended;
use memory::Call;
use notes::Notes;
use provider::Provider;

const TURNS: u32 = 40;
/// Every n-th message is repeated after its answer.
const REPEATED: u32 = 10;

#[derive(Debug, Default)]
pub(crate) struct Tools {
    notes: Option<Notes>,
    turns: u32,
}

impl Agent for Tools {
    const NAME: &'static str = "tools";

    fn new(_run: &Run) -> Self {
        Self::default()
    }

    async fn step(&mut self, http: &mut Http<'_>) {
        if self.notes.is_none() {
            self.notes = Notes::begin(http).await.ok();
            self.turns = 0;
        }
        let Some(notes) = &mut self.notes else {
            return;
        };
        let turn = turn(notes, http, self.turns).await;
        self.turns += 1;
        if turn.is_err() || self.turns == TURNS {
            self.finish(http).await;
        }
    }

    async fn finish(&mut self, http: &mut Http<'_>) {
        if let Some(notes) = self.notes.take() {
            notes.close(http).await;
        }
    }
}

async fn turn(notes: &mut Notes, http: &mut Http<'_>, number: u32) -> Result<(), Ended> {
    let key = format!("notes/{}", number % 8);
    let visits = || "visits".to_owned();
    let is_repeated = number % REPEATED == REPEATED - 1;
    let calls = [
        Call::Write {
            key: key.clone(),
            value: format!("note {number}, é, \"quoted\""),
        },
        Call::Increment {
            key: visits(),
            by: 1,
        },
        Call::Read { key: key.clone() },
        Call::Mistaken,
    ];
    notes
        .call_all(http, Provider::OpenAi, &calls, is_repeated)
        .await?;
    let tasks = (0..=number % 5).map(|task| format!("task {task} of turn {number}"));
    let calls = [
        Call::WriteTasks {
            contents: tasks.collect(),
        },
        Call::ReadTasks,
        Call::List,
    ];
    notes
        .call_all(http, Provider::Anthropic, &calls, false)
        .await?;
    notes.call_one(http, &Call::Read { key: visits() }).await?;
    if number.is_multiple_of(3) {
        notes.call_one(http, &Call::Delete { key }).await?;
    }
    Ok(())
}
