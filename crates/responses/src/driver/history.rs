//! Reads the part of a conversation that the model receives.

use std::time::Duration;

use serde_json::Value;

use super::{Driver, Stop};
use crate::driver::run::Run;
use crate::values::dialogue::items_of_message;
use crate::values::error::ResponseError;
use crate::values::items::response_of_item;
use crate::values::request::{ResponseContext, ResponseRequest};
use threadkeep_domain::scope::{ItemId, ScopeId};
use threadkeep_domain::{Json, Refusal, member, member_text, output_without_call};
use threadkeep_service::ServiceError;
use threadkeep_store::HistoryFrom;

impl Driver<'_> {
    /// Reads the conversation, oldest item first, and checks the request against it. Deletes a new response that fails
    /// a check, so that the client can repeat the request.
    pub(crate) async fn prepare(&self, run: &Run, is_new: bool) -> Result<Vec<Json>, Stop> {
        let error = match self.checked_history(run, is_new).await {
            Ok(history) => return Ok(history),
            Err(error) => error,
        };
        match error {
            ResponseError::TooMany
            | ResponseError::Locked { .. }
            | ResponseError::NoCall { .. }
            | ResponseError::NoInput
            | ResponseError::Service(ServiceError::Refused(Refusal::ItemIdReused { .. }))
                if is_new =>
            {
                self.withdraw().await?;
            }
            _ => drop(self.release().await),
        }
        Err(error.into())
    }

    /// Reads and checks the conversation. No other response can add items in the meantime, because the conversation is
    /// reserved for this response.
    async fn checked_history(&self, run: &Run, is_new: bool) -> Result<Vec<Json>, ResponseError> {
        if let Some(after) = run.request.after
            && is_new
            && let Some(by) = self.shared.later_than(self.scope, after).await?
        {
            return Err(ResponseError::Locked {
                by: Some(by),
                left: Duration::ZERO,
            });
        }
        let (history, is_whole) = self.history(&run.request).await?;
        self.reserve(history.iter().map(|item| item.as_str().len()).sum())?;
        if is_new {
            self.check_input(&run.request, is_whole.then_some(&*history))
                .await?;
        }
        Ok(history)
    }

    /// Reads the earlier items for the model, oldest first. Also returns whether they are the whole conversation.
    async fn history(&self, request: &ResponseRequest) -> Result<(Vec<Json>, bool), ResponseError> {
        let continued_scope = request.continued.map(|items| ScopeId::Thread(items.thread));
        if continued_scope.is_none() && !request.context.has_history() {
            return Ok((Vec::new(), true));
        }
        let scope = continued_scope.as_ref().unwrap_or(self.scope);
        let until = request.continued.map(|items| items.until);
        let before = until.map_or(u64::MAX, |until| until.saturating_add(1));
        let exchanges = self.shared.window_exchanges(request);
        let earlier = self.shared.earlier(scope, before, exchanges).await?;
        // the thread has ended, or the last item to read was removed, since the client sent the request
        if until.is_some() && earlier.newest != until {
            return Err(ServiceError::from(Refusal::Destroyed).into());
        }
        let (items, is_whole) = (earlier.items, earlier.is_whole);
        let items = match request.context {
            ResponseContext::Session => {
                let messages = items.iter();
                let items = messages.flat_map(|message| items_of_message(message.as_str()));
                items.collect()
            }
            _ => items,
        };
        Ok((items, is_whole))
    }

    /// Checks the input of a new response against its conversation. `history` is `None` if the conversation is larger
    /// than the window that the model receives.
    ///
    /// # Errors
    /// [`ResponseError::NoInput`], [`ResponseError::NoCall`], or [`Refusal::ItemIdReused`] if the conversation contains
    /// a different message with the id of an input item.
    async fn check_input(
        &self,
        request: &ResponseRequest,
        history: Option<&[Json]>,
    ) -> Result<(), ResponseError> {
        if let Some(history) = history {
            if request.input.is_empty() && history.is_empty() {
                return Err(ResponseError::NoInput);
            }
            let before = history.iter().map(Json::as_str);
            let input = request.input.iter().map(|item| item.value.as_str());
            if let Some(index) = output_without_call(before, input) {
                return Err(ResponseError::NoCall { index });
            }
        }
        if request.context != ResponseContext::Conversation {
            return Ok(());
        }
        for (index, item) in request.input.iter().enumerate() {
            let id = item.item_id();
            let id = id.filter(|id| response_of_item(id.as_str()).is_none());
            if let Some(id) = id
                && is_from_client(&item.value)
                && self.has_different_message(&id, &item.value).await?
            {
                return Err(ServiceError::from(Refusal::ItemIdReused { item: index }).into());
            }
        }
        Ok(())
    }

    /// Returns whether the conversation has a different message with `id`.
    async fn has_different_message(
        &self,
        id: &ItemId,
        value: &Json,
    ) -> Result<bool, ResponseError> {
        let scopes = &self.shared.scopes;
        let position = scopes.find_item(self.scope, id).await?;
        let Some(position) = position.filter(|position| !position.is_removed) else {
            return Ok(false);
        };
        let from = HistoryFrom::Before(position.seq.saturating_add(1));
        let page = scopes.history(self.scope, from, 1).await?;
        let item = page.items.first().filter(|item| item.seq == position.seq);
        Ok(item.is_some_and(|item| meaning_of(&item.value) != meaning_of(value)))
    }
}

/// Returns the members of a message that determine its meaning. The values are parsed so that differences in JSON
/// notation do not affect comparisons.
fn meaning_of(message: &Json) -> [Option<Value>; 3] {
    ["type", "role", "content"].map(|name| {
        let json = member(message.as_str(), name)?;
        serde_json::from_str(json).ok()
    })
}

/// Returns whether the item is a message from the client. Messages from models do not count, because clients may resend
/// them in a changed form.
fn is_from_client(item: &Json) -> bool {
    let text = |name| member_text(item.as_str(), name);
    text("type").as_deref() == Some("message") && text("role").as_deref() != Some("assistant")
}
