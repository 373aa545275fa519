//! The part of a conversation that the model reads.

use std::time::Duration;

use super::Driver;
use crate::domain::{Json, Window};
use crate::service::responses::dialogue::items_of_message;
use crate::service::responses::error::TurnError;
use crate::service::responses::request::{TurnContext, TurnRequest};
use crate::service::responses::run::Run;
use crate::store::HistoryFrom;

/// Bytes of a conversation's earlier items that go upstream at most.
const WINDOW_MAX_BYTES: usize = 8 * 1_048_576;
/// Items of a conversation that are read at once.
const PAGE: usize = 500;

impl Driver<'_> {
    /// The earlier items of the conversation that the model reads, the oldest first, for a turn that may go on.
    pub(super) async fn prepare(&self, run: &Run) -> Result<Vec<Json>, TurnError> {
        let prepared = self.checked_history(run).await;
        match &prepared {
            Ok(_) => {}
            // nothing has come of it, and nothing will
            Err(TurnError::TooMany | TurnError::Locked { .. }) if run.course.entries == 0 => {
                self.withdraw().await?;
            }
            Err(_) => self.release().await,
        }
        prepared
    }

    /// This driver has the floor, so no other turn adds items in between.
    async fn checked_history(&self, run: &Run) -> Result<Vec<Json>, TurnError> {
        if let Some(after) = run.request.after
            && run.course.entries == 0
            && let Some(by) = self.shared.later_than(self.scope, after).await?
        {
            return Err(TurnError::Locked {
                by: Some(by),
                left: Duration::ZERO,
            });
        }
        let history = self.history(&run.request).await?;
        self.hold(history.iter().map(|item| item.as_str().len()).sum())?;
        Ok(history)
    }

    /// The earlier items of the conversation that the model reads, the oldest first.
    async fn history(&self, request: &TurnRequest) -> Result<Vec<Json>, TurnError> {
        if !request.context.has_history() {
            return Ok(Vec::new());
        }
        let limit = self.shared.limits.window as usize;
        let turns = match request.window_turns {
            Some(wanted) if limit == 0 || (wanted as usize) < limit => wanted as usize,
            _ => limit,
        };
        let mut window = Window::new(turns, WINDOW_MAX_BYTES);
        let (mut items, mut before) = (Vec::new(), u64::MAX);
        'pages: loop {
            let from = HistoryFrom::Before(before);
            let page = self.shared.scopes.history(self.scope, from, PAGE).await?;
            let Some(last) = page.items.last() else {
                break;
            };
            before = last.seq;
            for kept in page.items {
                if !window.admit(kept.value.as_str()) {
                    break 'pages;
                }
                items.push(kept.value);
            }
        }
        items.truncate(window.items());
        items.reverse();
        Ok(match request.context {
            TurnContext::Session => {
                let messages = items.iter();
                let items = messages.flat_map(|message| items_of_message(message.as_str()));
                items.collect()
            }
            _ => items,
        })
    }
}
