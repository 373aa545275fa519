use std::ops::ControlFlow;

use actix_web::HttpResponse;

use super::UseAgentError;
use super::list_query::MessagesQuery;
use super::messages::Message;
use super::naming::label;
use super::objects::thread_head;
use super::request::UseAgentRequest;
use threadkeep_domain::scope::StoredItem;
use threadkeep_domain::{parse_rfc3339, quoted};
use threadkeep_http::json_text;

/// The messages of an answer, newest first.
struct Messages {
    /// Number of further messages to collect.
    missing: usize,
    before: Option<Before>,
    shown: Vec<String>,
}

/// The message or time that the returned messages precede.
struct Before {
    /// The id of a message as JSON.
    id: String,
    /// Milliseconds since the Unix epoch, if `before` is a time.
    ms: Option<u64>,
}

/// `GET /api/threads/{threadId}`
pub(super) async fn get_thread(request: UseAgentRequest) -> Result<HttpResponse, UseAgentError> {
    let (name, id) = request.thread()?;
    let query: MessagesQuery = request.query()?;
    let thread = request.threads().get_thread(&id).await?;
    let thread = thread.ok_or(UseAgentError::NoSuchThread)?;
    request.caller.check(&thread)?;
    let mut messages = Messages::new(&query);
    let conversations = &request.protocol.conversations;
    let summary = conversations
        .read_back(&request.scopes(), &id, |item| messages.take(&item))
        .await?;
    let label = label(&id, &thread.metadata);
    let title = request.protocol.title_or(label.title, &id).await?;
    let is_named = label.id != id.as_str();
    let shown_id = if is_named { &label.id } else { &name };
    let head = thread_head(shown_id, &title, &thread, summary.len());
    let messages = messages.finish()?;
    let json = format!(r#"{{"thread":{head},"messages":[{messages}]}}"#);
    Ok(json_text(HttpResponse::Ok(), json))
}

impl Messages {
    fn new(query: &MessagesQuery) -> Self {
        let before = query.before.as_ref().map(|before| Before {
            id: quoted(before),
            ms: parse_rfc3339(before),
        });
        Self {
            missing: query.limit.unwrap_or(usize::MAX),
            before,
            shown: Vec::new(),
        }
    }

    /// Adds an item. Items must be passed from newest to oldest.
    fn take(&mut self, item: &StoredItem) -> ControlFlow<()> {
        let Some(message) = Message::of(item) else {
            return ControlFlow::Continue(());
        };
        if let Some(before) = &self.before {
            let is_boundary = message.id == before.id;
            let is_older = before.ms.is_some_and(|ms| item.at_ms < ms);
            if is_boundary || is_older {
                self.before = None;
            }
            if !is_older {
                return ControlFlow::Continue(());
            }
        }
        self.shown.push(message.json);
        self.missing -= 1;
        match self.missing {
            0 => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    }

    /// Renders the messages, oldest first.
    fn finish(mut self) -> Result<String, UseAgentError> {
        if self.before.is_some_and(|before| before.ms.is_none()) {
            return Err(UseAgentError::invalid(
                "`before` must be the id of a message of the thread, or a time",
            ));
        }
        self.shown.reverse();
        Ok(self.shown.join(","))
    }
}
