use std::time::Instant;

use actix_web::{HttpRequest, web};

use super::feed;
use super::feed::{Frame, Source};
use super::query::{LastEvent, Resume, ThreadEventsQuery};
use super::visible::{Verdict, Viewer};
use crate::Api;
use crate::answer::ApiResult;
use crate::problems::StreamProblems;
use crate::request::{Listener, Query, StreamTarget, change_context, cursor, session_of};
use threadkeep_domain::{Completed, Event, EventKind, Stamp, ThreadId};
use threadkeep_events::{ThreadCursor, ThreadItem, ThreadStream};
use threadkeep_service::ServiceError;
use threadkeep_store::StoreError;
use threadkeep_web::SessionId;

struct ThreadFeed {
    api: web::Data<Api>,
    id: ThreadId,
    viewer: Viewer,
    stream: ThreadStream,
    /// The next item of `stream`, if already read.
    next_item: Option<ThreadItem>,
    /// True if the last item sent is a `reset`. A hidden event then does not need another `reset`.
    is_covered_by_reset: bool,
    with_values: bool,
    _session: Option<Session>,
}

struct Session {
    api: web::Data<Api>,
    thread: ThreadId,
    session: SessionId,
    start: Instant,
}

/// Stream events of a thread
///
/// Sends server-sent events. A client that reconnects with its last cursor receives all later events that the log still
/// holds. If the log no longer holds them, a `reset` event tells the client to read the thread again.
///
/// With `values`, an event contains the new values of the changed keys, unless the thread has changed again or the
/// values exceed 64 KiB. A changed key without a value was deleted.
///
/// `thread.rotated` is the last event under the thread's old id. Continue with this event's cursor and the new id.
///
/// The server sends a comment every 15 seconds. The stream does not extend the thread's lifetime, and ends when the
/// token that opened it expires.
#[utoipa::path(
    get,
    path = "/v1/threads/current/events",
    params(
        ("values" = Option<bool>, Query, description = "Whether events contain the new values of changed keys, `false` by default."),
        ("Last-Event-ID" = Option<String>, Header, description = "The cursor of the last event that the client received."),
        ("last_event_id" = Option<String>, Query, description = "The cursor, for clients that cannot set headers. The header `Last-Event-ID` takes precedence."),
    ),
    responses(
        (status = 200, description = "An endless stream of server-sent events. `event` is the event type, `data` is an `Event`, and `id` is the cursor.", body = String, content_type = "text/event-stream"),
        StreamProblems,
    ),
)]
pub(crate) async fn get_thread_events(
    request: HttpRequest,
    StreamTarget(target): StreamTarget,
    Query(query): Query<ThreadEventsQuery>,
    last: LastEvent,
) -> ApiResult {
    // reads the expiration time before the store call, because the token may expire during the call
    let ends = target.valid_until(&request);
    let Listener { api, id, access } = target.listener().await?;
    let after = cursor_of(&api, &id, &last, &query.resume)?;
    let stream = api.events.thread_stream(&id, after).await;
    let stream = stream.map_err(ServiceError::Store)?;
    let viewer = Viewer::of(api.clone(), id, access).await?;
    let session = Session::of(&request, &api, id);
    change_context(&request, |context| context.is_streaming = true);
    let events = api.events.clone();
    let feed = ThreadFeed {
        api,
        id,
        viewer,
        stream,
        next_item: None,
        is_covered_by_reset: false,
        with_values: query.wants_values(),
        _session: session,
    };
    Ok(feed::respond(feed, &events, ends))
}

pub(crate) async fn head_thread_events(
    StreamTarget(target): StreamTarget,
    Query(query): Query<ThreadEventsQuery>,
    last: LastEvent,
) -> ApiResult {
    let Listener { api, id, .. } = target.listener().await?;
    cursor_of(&api, &id, &last, &query.resume)?;
    Ok(feed::head())
}

fn cursor_of(
    api: &Api,
    id: &ThreadId,
    last: &LastEvent,
    resume: &Resume,
) -> ApiResult<Option<ThreadCursor>> {
    cursor::after(api.identity.ring(), id.as_bytes(), last.or(resume))
}

impl ThreadFeed {
    fn seal(&self, cursor: &ThreadCursor) -> String {
        seal(&self.api, &self.id, cursor)
    }

    /// Returns a `reset` event to send instead of a hidden event, or `None` if the last item sent was also a `reset`. A
    /// hidden rotation always causes a `reset`, so that a client that reconnects resumes after the rotation.
    async fn reset_after(&self, item: &ThreadItem) -> Result<Option<ThreadItem>, StoreError> {
        let ThreadItem::Event { event, cursor } = item else {
            return Ok(None);
        };
        if self.is_covered_by_reset && new_id(event).is_none() {
            return Ok(None);
        }
        let (version, cursor) = (self.viewer.version().await?, *cursor);
        Ok(Some(ThreadItem::Reset { version, cursor }))
    }
}

fn seal(api: &Api, id: &ThreadId, cursor: &ThreadCursor) -> String {
    cursor::seal(api.identity.ring(), id.as_bytes(), cursor)
}

fn new_id(event: &Event) -> Option<&ThreadId> {
    match &event.kind {
        EventKind::Rotated { to } => Some(to),
        _ => None,
    }
}

/// Returns the cursor from which the thread's events continue in the stream of the new id.
fn cursor_after_rotation(event: &Event) -> ThreadCursor {
    ThreadCursor {
        position: event.id.position,
        stamp: Stamp {
            version: event.version,
            life: event.life,
        },
        // 0 skips the check of history positions, because the event does not contain the position of the next item
        next_seq: 0,
    }
}

impl Source for ThreadFeed {
    type Item = ThreadItem;

    fn start(&self) -> String {
        self.seal(&self.stream.start())
    }

    fn cursor(&self) -> Option<String> {
        if self.next_item.is_some() {
            return None;
        }
        self.stream.cursor().map(|cursor| self.seal(&cursor))
    }

    async fn next(&mut self) -> Result<Option<ThreadItem>, StoreError> {
        loop {
            if self.next_item.is_none() {
                self.next_item = self.stream.next().await?;
            }
            let Some(item) = &self.next_item else {
                return Ok(None);
            };
            let next = match self.viewer.judge(item).await? {
                Verdict::AccessLost => return Ok(None),
                Verdict::Shown => self.next_item.clone(),
                Verdict::Hidden => self.reset_after(item).await?,
            };
            self.is_covered_by_reset = matches!(next, None | Some(ThreadItem::Reset { .. }));
            self.next_item = None;
            if next.is_some() {
                return Ok(next);
            }
        }
    }

    async fn frame(&self, item: ThreadItem) -> Result<Frame, StoreError> {
        Ok(match item {
            ThreadItem::Event { event, cursor } => Frame {
                event: event.event_type().as_str(),
                id: match new_id(&event) {
                    Some(id) => seal(&self.api, id, &cursor_after_rotation(&event)),
                    None => self.seal(&cursor),
                },
                data: match self.with_values {
                    true => self.api.events.render_with_values(&event).await?,
                    false => self.api.events.render(&event).await?,
                },
            },
            ThreadItem::Reset { version, cursor } => Frame {
                event: "reset",
                id: self.seal(&cursor),
                data: format!(r#"{{"thread_id":"{}","version":{version}}}"#, self.id),
            },
        })
    }
}

impl Session {
    fn of(request: &HttpRequest, api: &web::Data<Api>, thread: ThreadId) -> Option<Self> {
        Some(Self {
            api: api.clone(),
            thread,
            session: session_of(request)?,
            start: Instant::now(),
        })
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let completed = || Completed {
            session: self.session.as_str().into(),
            status: 200,
            duration_ms: self.start.elapsed().as_millis() as u64,
        };
        self.api.events.session_completed(&self.thread, completed);
    }
}
