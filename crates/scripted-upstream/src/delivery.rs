use std::io;
use std::time::Duration;

use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::task::yield_now;
use tokio::time::sleep;

use crate::gate::Lock;
use crate::http::{chunk, head, json, stream_head};
use crate::reply::{Answer, Failure, Kind, PRIVATE_DETAIL, Reply};
use crate::request::ModelRequest;
use crate::wire::{Event, Stage};

const GARBAGE: &str = r#"{"choices":[{"delta":{"content":<html>"#;

/// A step of a delivery. After the last step, the connection accepts another request unless that step is `Close`.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    Send(Vec<u8>),
    Wait(Duration),
    Pass(Lock),
    Hang,
    Close,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    Request,
    Close,
}

pub(crate) fn steps(reply: &Reply, request: &ModelRequest) -> Vec<Step> {
    let mut steps = match &reply.kind {
        Kind::Answer(answer) if request.is_stream() => stream(reply, answer, request),
        Kind::Answer(answer) => whole(reply, answer, request),
        Kind::Error { status, message } => {
            let body = request.wire.error(*status, message).to_string();
            json(*status, &reply.headers, &body).map(Step::Send).into()
        }
        Kind::Hang => vec![Step::Hang],
        Kind::Disconnect => vec![Step::Close],
    };
    if let Some((bytes, pause)) = reply.pieces {
        steps = split(steps, bytes, pause);
    }
    if !reply.delay.is_zero() {
        steps.insert(0, Step::Wait(reply.delay));
    }
    steps
}

pub(crate) async fn deliver<W: AsyncWrite + Unpin>(
    writer: &mut W,
    steps: Vec<Step>,
) -> io::Result<Next> {
    for step in steps {
        match step {
            Step::Send(bytes) => writer.write_all(&bytes).await?,
            // a sleep would take at least a millisecond
            Step::Wait(Duration::ZERO) => yield_now().await,
            Step::Wait(pause) => sleep(pause).await,
            Step::Pass(lock) => lock.pass().await,
            Step::Hang => std::future::pending().await,
            Step::Close => return Ok(Next::Close),
        }
    }
    Ok(Next::Request)
}

fn whole(reply: &Reply, answer: &Answer, request: &ModelRequest) -> Vec<Step> {
    let full = match answer.failure {
        Some(Failure::Garbage) => GARBAGE.to_owned(),
        Some(Failure::Error) => request.wire.error(500, PRIVATE_DETAIL).to_string(),
        _ => request.wire.whole(request.context(), answer).to_string(),
    };
    let mut middle = full.len() / 2;
    while !full.is_char_boundary(middle) {
        middle += 1;
    }
    let (begin, rest) = full.split_at(middle);
    let sent = match answer.failure {
        Some(Failure::EndsEarly) => begin,
        _ => &full,
    };
    let length = format!("content-length: {}", sent.len());
    let mut steps = vec![
        Step::Send(head(200, "application/json", &reply.headers, &length)),
        Step::Send(begin.into()),
    ];
    steps.extend(reply.lock.clone().map(Step::Pass));
    match answer.failure {
        Some(Failure::CutOff) => steps.push(Step::Close),
        Some(Failure::Hang) => steps.push(Step::Hang),
        Some(Failure::EndsEarly) => {}
        Some(Failure::Garbage | Failure::Error) | None => steps.push(Step::Send(rest.into())),
    }
    steps
}

fn stream(reply: &Reply, answer: &Answer, request: &ModelRequest) -> Vec<Step> {
    let events = request.wire.events(request.context(), answer);
    let ends = events.iter().position(|event| event.stage == Stage::End);
    let ends = ends.unwrap_or(events.len());
    let middle = match reply.middle {
        None => ends.div_ceil(2),
        Some(deltas) => index_after(&events, deltas),
    };
    let send = |events: &[Event]| -> Vec<Step> {
        let chunks = events.iter().map(|event| chunk(&event.text));
        chunks.map(Step::Send).collect()
    };
    let mut steps = vec![Step::Send(stream_head(&reply.headers))];
    steps.extend(send(&events[..middle]));
    steps.extend(reply.lock.clone().map(Step::Pass));
    let last = Step::Send(chunk(""));
    match answer.failure {
        Some(Failure::CutOff) => {
            // the event breaks off in the middle of a line
            let next = events[middle].text.as_str();
            let half = next.chars().take(next.chars().count() / 2);
            steps.push(Step::Send(chunk(&half.collect::<String>())));
            steps.push(Step::Close);
        }
        Some(Failure::EndsEarly) => {
            let rest = reply.middle.map_or(ends, |_| middle);
            steps.extend(send(&events[middle..rest]));
            steps.push(last);
        }
        Some(Failure::Garbage) => {
            let garbage = format!("event: content_block_delta\ndata: {GARBAGE}\n\n");
            steps.push(Step::Send(chunk(&garbage)));
            steps.extend(send(&events[middle..]));
            steps.push(last);
        }
        Some(Failure::Error) => {
            let error = request.wire.error_event(PRIVATE_DETAIL);
            steps.push(Step::Send(chunk(&error)));
            steps.push(last);
        }
        Some(Failure::Hang) => steps.push(Step::Hang),
        None => {
            steps.extend(send(&events[middle..]));
            steps.push(last);
        }
    }
    steps
}

/// Returns how many events, counted from the start, include the first `deltas` deltas.
fn index_after(events: &[Event], deltas: usize) -> usize {
    let indexed = events.iter().enumerate();
    let mut delta_events = indexed.filter(|(_, event)| event.stage == Stage::Delta);
    match deltas.checked_sub(1) {
        None => 0,
        Some(earlier) => delta_events
            .nth(earlier)
            .map(|(index, _)| index + 1)
            .expect("the answer has that delta"),
    }
}

fn split(steps: Vec<Step>, bytes: usize, pause: Duration) -> Vec<Step> {
    let mut split = Vec::new();
    let mut is_head = true;
    for step in steps {
        match step {
            Step::Send(text) if !is_head => {
                let pieces = text.chunks(bytes);
                split
                    .extend(pieces.flat_map(|piece| [Step::Wait(pause), Step::Send(piece.into())]));
            }
            other => {
                is_head &= !matches!(other, Step::Send(_));
                split.push(other);
            }
        }
    }
    split
}
