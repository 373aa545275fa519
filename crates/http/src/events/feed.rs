//! Streams server-sent events ([HTML standard, section
//! 9.2](https://html.spec.whatwg.org/multipage/server-sent-events.html)).

use std::convert::Infallible;
use std::fmt::Write;
use std::future::{Future, pending};
use std::time::SystemTime;

use actix_web::HttpResponse;
use bytes::Bytes;
use futures_util::stream;
use tokio::time::{Instant, sleep_until};

use crate::answer::{COMMENT, EVENT_STREAM, streamed};
use threadkeep_events::Events;
use threadkeep_store::StoreError;

const RETRY_MS: u32 = 2_000;

pub(super) struct Frame {
    pub(crate) event: &'static str,
    pub(crate) id: String,
    /// One line of JSON.
    pub(crate) data: String,
}

pub(crate) trait Source: 'static {
    type Item;

    fn start(&self) -> String;

    /// Returns the cursor after the latest event that was read, or `None` if an event is ready to be sent.
    fn cursor(&self) -> Option<String>;

    /// Returns the next item, or `None` at the end. Cancel-safe.
    fn next(&mut self) -> impl Future<Output = Result<Option<Self::Item>, StoreError>>;

    fn frame(&self, item: Self::Item) -> impl Future<Output = Result<Frame, StoreError>>;
}

pub(crate) fn head() -> HttpResponse {
    streamed(EVENT_STREAM).streaming(stream::empty::<Result<Bytes, Infallible>>())
}

/// Streams events until `source` ends or fails, but no later than `until`. The client then reconnects and resumes from
/// its last cursor.
pub(crate) fn respond(
    source: impl Source,
    events: &Events,
    until: Option<SystemTime>,
) -> HttpResponse {
    let heartbeat = events.heartbeat();
    let ends = until.and_then(instant_of);
    let first = format!("retry: {RETRY_MS}\nid: {}\n\n", source.start());
    let frames = stream::unfold(
        (source, Some(first)),
        move |(mut source, first)| async move {
            let text = match first {
                Some(first) => first,
                None => tokio::select! {
                    biased;
                    () = sleep_until_end(ends) => return None,
                    text = next(&mut source, Instant::now() + heartbeat) => text?,
                },
            };
            Some((Ok::<_, Infallible>(Bytes::from(text)), (source, None)))
        },
    );
    streamed(EVENT_STREAM).streaming(frames)
}

fn instant_of(time: SystemTime) -> Option<Instant> {
    let remaining = time.duration_since(SystemTime::now()).unwrap_or_default();
    Instant::now().checked_add(remaining)
}

async fn sleep_until_end(end: Option<Instant>) {
    match end {
        Some(end) => sleep_until(end).await,
        None => pending().await,
    }
}

/// Returns the next frame, or a comment if no event arrives by `silent_until`. Returns `None` at the end of the stream.
async fn next(source: &mut impl Source, silent_until: Instant) -> Option<String> {
    let item = tokio::select! {
        item = source.next() => item,
        () = sleep_until(silent_until) => return Some(comment(source.cursor())),
    };
    let frame = match item {
        Ok(Some(item)) => source.frame(item).await,
        Ok(None) => return None,
        Err(error) => Err(error),
    };
    match frame {
        Ok(frame) => Some(frame.to_text()),
        Err(error) => {
            tracing::debug!(%error, "event stream ended");
            None
        }
    }
}

fn comment(cursor: Option<String>) -> String {
    match cursor {
        Some(cursor) => format!(":\nid: {cursor}\n\n"),
        None => COMMENT.into(),
    }
}

impl Frame {
    fn to_text(&self) -> String {
        let Self { event, id, data } = self;
        let mut text = String::with_capacity(event.len() + id.len() + data.len() + 32);
        write!(text, "event: {event}\nid: {id}\ndata: {data}\n\n")
            .expect("writing to a string never fails");
        text
    }
}
