use actix_web::http::header::{ACCEPT, HeaderName};
use serde::Deserialize;

use super::RelayError;
use super::error::wrong_input;
use super::request::RelayRequest;
use threadkeep_http::EVENT_STREAM;

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
const LIMIT_MAX: u32 = 10_000;

/// The requested part of a run's event stream.
pub(super) struct EventQuery {
    /// Sequence number of the last run event that the reader has received.
    pub(super) seq: u64,
    /// Sequence number of the last state event that the reader has received. `None` to omit state events.
    pub(super) state_seq: Option<u64>,
    pub(super) limit: Option<u32>,
    /// True if the stream stays open for later events.
    pub(super) waits: bool,
    /// True if the events are sent as server-sent events instead of lines.
    pub(super) as_sse: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Parameters {
    after_seq: Option<u64>,
    after_state_seq: Option<u64>,
    limit: Option<u32>,
    wait: Option<String>,
    include: Option<String>,
    include_output: Option<String>,
}

impl EventQuery {
    /// Parses the query. With `Last-Event-ID`, the stream resumes after that event.
    pub(super) fn of(request: &RelayRequest) -> Result<Self, RelayError> {
        let query: Parameters = request.query()?;
        let limit = query.limit;
        if limit.is_some_and(|limit| !(1..=LIMIT_MAX).contains(&limit)) {
            return Err(wrong_input(format!(
                "limit must be between 1 and {LIMIT_MAX}"
            )));
        }
        // `include_output` has no effect beyond this check, because clients reject events with outputs
        flag("include_output", query.include_output.as_deref())?;
        let has_state = includes_state(query.include.as_deref())?;
        if query.after_state_seq.is_some() && !has_state {
            return Err(wrong_input("after_state_seq requires include=state"));
        }
        let (last_seq, last_state_seq) = last_event(request)?;
        let seq = last_seq.or(query.after_seq).unwrap_or(0);
        let state_seq = last_state_seq.or(query.after_state_seq).unwrap_or(0);
        let accept = request.headers().get(ACCEPT);
        let accept = accept.and_then(|accept| accept.to_str().ok());
        Ok(Self {
            seq,
            state_seq: has_state.then_some(state_seq),
            limit,
            waits: flag("wait", query.wait.as_deref())?.unwrap_or(true),
            as_sse: accept.is_some_and(|accept| accept.contains(EVENT_STREAM)),
        })
    }
}

fn flag(name: &str, text: Option<&str>) -> Result<Option<bool>, RelayError> {
    match text {
        None => Ok(None),
        Some("true" | "1") => Ok(Some(true)),
        Some("false" | "0") => Ok(Some(false)),
        Some(_) => Err(wrong_input(format!("{name} must be true, false, 1 or 0"))),
    }
}

fn includes_state(include: Option<&str>) -> Result<bool, RelayError> {
    match include {
        None | Some("") => Ok(false),
        Some("state") => Ok(true),
        Some(_) => Err(wrong_input("include must be state")),
    }
}

/// Parses `Last-Event-ID` as [`super::events`] writes it: `SEQ` or `SEQ:STATE_SEQ`.
fn last_event(request: &RelayRequest) -> Result<(Option<u64>, Option<u64>), RelayError> {
    let Some(id) = request.headers().get(LAST_EVENT_ID) else {
        return Ok((None, None));
    };
    let id = id.to_str().unwrap_or_default();
    let (seq, state_seq) = match id.split_once(':') {
        Some((seq, state_seq)) => (seq, Some(state_seq)),
        None => (id, None),
    };
    let read = |text: &str| {
        let seq = text.parse::<u64>();
        seq.map_err(|_| wrong_input("Last-Event-ID must be the id of an event of this run"))
    };
    Ok((Some(read(seq)?), state_seq.map(read).transpose()?))
}
