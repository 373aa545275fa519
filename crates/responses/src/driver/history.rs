//! The part of a conversation that the model reads.

use std::time::Duration;

use serde_json::Value;

use super::{Driver, Stop};
use crate::dialogue::items_of_message;
use crate::error::TurnError;
use crate::items::turn_of_item;
use crate::request::{TurnContext, TurnRequest};
use crate::run::Run;
use threadkeep_domain::scope::{ItemId, ScopeId};
use threadkeep_domain::{Json, Refusal, member, member_text, output_without_call};
use threadkeep_service::ServiceError;
use threadkeep_store::HistoryFrom;

impl Driver<'_> {
    /// The earlier items of the conversation that the model reads, the oldest first, for a turn that may go on.
    ///
    /// # Errors
    /// [`Stop`]. Nothing is kept of a new turn that may not, so that the same request may come again.
    pub(super) async fn prepare(&self, run: &Run, is_new: bool) -> Result<Vec<Json>, Stop> {
        let error = match self.checked_history(run, is_new).await {
            Ok(history) => return Ok(history),
            Err(error) => error,
        };
        match error {
            TurnError::TooMany
            | TurnError::Locked { .. }
            | TurnError::NoCall { .. }
            | TurnError::NoInput
            | TurnError::Service(ServiceError::Refused(Refusal::ItemIdReused { .. }))
                if is_new =>
            {
                self.withdraw().await?;
            }
            _ => drop(self.release().await),
        }
        Err(error.into())
    }

    /// This driver has the floor, so no other turn adds items in between.
    async fn checked_history(&self, run: &Run, is_new: bool) -> Result<Vec<Json>, TurnError> {
        if let Some(after) = run.request.after
            && is_new
            && let Some(by) = self.shared.later_than(self.scope, after).await?
        {
            return Err(TurnError::Locked {
                by: Some(by),
                left: Duration::ZERO,
            });
        }
        let (history, is_whole) = self.history(&run.request).await?;
        self.hold(history.iter().map(|item| item.as_str().len()).sum())?;
        if is_new {
            self.check_input(&run.request, is_whole.then_some(&*history))
                .await?;
        }
        Ok(history)
    }

    /// The earlier items of the conversation that the model reads, the oldest first, and whether these are all.
    async fn history(&self, request: &TurnRequest) -> Result<(Vec<Json>, bool), TurnError> {
        let of_thread = request.continued.map(|items| ScopeId::Thread(items.thread));
        if of_thread.is_none() && !request.context.has_history() {
            return Ok((Vec::new(), true));
        }
        let scope = of_thread.as_ref().unwrap_or(self.scope);
        let until = request.continued.map(|items| items.until);
        let before = until.map_or(u64::MAX, |until| until.saturating_add(1));
        let turns = self.shared.window_turns(request);
        let earlier = self.shared.earlier(scope, before, turns).await?;
        // the thread has ended since the request named its response, or has lost the item
        if until.is_some() && earlier.newest != until {
            return Err(ServiceError::from(Refusal::Destroyed).into());
        }
        let (items, is_whole) = (earlier.items, earlier.is_whole);
        let items = match request.context {
            TurnContext::Session => {
                let messages = items.iter();
                let items = messages.flat_map(|message| items_of_message(message.as_str()));
                items.collect()
            }
            _ => items,
        };
        Ok((items, is_whole))
    }

    /// Checks the input of a new turn against its conversation, of which the items are known if that is small.
    ///
    /// # Errors
    /// [`TurnError::NoInput`], [`TurnError::NoCall`], or [`Refusal::ItemIdReused`] for an id that a client has given to another item.
    async fn check_input(
        &self,
        request: &TurnRequest,
        history: Option<&[Json]>,
    ) -> Result<(), TurnError> {
        if let Some(history) = history {
            if request.input.is_empty() && history.is_empty() {
                return Err(TurnError::NoInput);
            }
            let before = history.iter().map(Json::as_str);
            let input = request.input.iter().map(|item| item.value.as_str());
            if let Some(index) = output_without_call(before, input) {
                return Err(TurnError::NoCall { index });
            }
        }
        if request.context != TurnContext::Conversation {
            return Ok(());
        }
        for (index, item) in request.input.iter().enumerate() {
            let id = item.item_id();
            let id = id.filter(|id| turn_of_item(id.as_str()).is_none());
            if let Some(id) = id
                && is_of_sender(&item.value)
                && self.has_other(&id, &item.value).await?
            {
                return Err(ServiceError::from(Refusal::ItemIdReused { item: index }).into());
            }
        }
        Ok(())
    }

    /// Whether the conversation has another message with that id.
    async fn has_other(&self, id: &ItemId, value: &Json) -> Result<bool, TurnError> {
        let scopes = &self.shared.scopes;
        let place = scopes.find_item(self.scope, id).await?;
        let Some(place) = place.filter(|place| !place.is_removed) else {
            return Ok(false);
        };
        let from = HistoryFrom::Before(place.seq.saturating_add(1));
        let page = scopes.history(self.scope, from, 1).await?;
        let item = page.items.first().filter(|item| item.seq == place.seq);
        Ok(item.is_some_and(|item| said(&item.value) != said(value)))
    }
}

/// The meaning of a message, however its JSON is written.
fn said(message: &Json) -> [Option<Value>; 3] {
    ["type", "role", "content"].map(|name| {
        let json = member(message.as_str(), name)?;
        serde_json::from_str(json).ok()
    })
}

/// Whether only its sender can have written an item: clients send those of models again, and need not send them unchanged.
fn is_of_sender(item: &Json) -> bool {
    let text = |name| member_text(item.as_str(), name);
    text("type").as_deref() == Some("message") && text("role").as_deref() != Some("assistant")
}
