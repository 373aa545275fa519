//! Streams the events of a response as server-sent events.
//!
//! See the HTML standard, [section 9.2](https://html.spec.whatwg.org/multipage/server-sent-events.html).

use std::fmt::Write;
use std::time::Duration;

use actix_web::HttpResponse;
use bytes::Bytes;
use tokio::time::sleep;

use super::wire_event::WireEvent;
use threadkeep_http::{COMMENT, EVENT_STREAM, cut_at_error, mark_replay, streamed};
use threadkeep_responses::{ResponseError, ResponseStream};

/// Maximum silence before a comment is sent.
const SILENCE_MAX: Duration = Duration::from_secs(5);
/// Number of bytes of events that are sent together.
const CHUNK_BYTES: usize = 32 * 1_024;
const DONE: &str = "data: [DONE]\n\n";

/// Streams events until the response ends. If the stream fails earlier, aborts the connection, so that the client
/// reconnects and continues after the last event that it received.
pub(super) fn respond(events: ResponseStream) -> HttpResponse {
    let mut response = streamed(EVENT_STREAM);
    mark_replay(&mut response, events.is_replay());
    let events = Events {
        events,
        is_done: false,
    };
    cut_at_error(response, events, next)
}

struct Events {
    events: ResponseStream,
    is_done: bool,
}

/// Returns the next events, or a comment if no event arrives for some time. Returns `None` at the end.
async fn next(events: &mut Events) -> Result<Option<Bytes>, ResponseError> {
    let Events { events, is_done } = events;
    if *is_done {
        return Ok(None);
    }
    let mut text = String::new();
    loop {
        let item = tokio::select! {
            item = events.next() => item?,
            () = sleep(SILENCE_MAX) => return Ok(Some(Bytes::from_static(COMMENT.as_bytes()))),
        };
        let Some((number, item)) = item else {
            *is_done = true;
            return Ok(Some((text + DONE).into()));
        };
        let WireEvent { kind, data } = WireEvent::of(number, &item, events.id(), events.request());
        write!(text, "event: {kind}\nid: {number}\ndata: {data}\n\n")
            .expect("a string takes any text");
        if !events.is_ready() || text.len() >= CHUNK_BYTES {
            return Ok(Some(text.into()));
        }
    }
}
