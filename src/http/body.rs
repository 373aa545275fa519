//! Request bodies, read whole before a handler runs.
//!
//! A refusal that is sent while the client is still sending is often lost with the connection, so
//! the body is read to its end first, whatever the answer will be; past the limit it is dropped. What is announced to
//! be too large is not kept at all, and what nobody waits to the end for is answered at once.

use std::cell::RefCell;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use actix_web::HttpMessage;
use actix_web::dev::{Payload, ServiceRequest};
use actix_web::error::PayloadError;
use actix_web::http::header::{CONTENT_LENGTH, HeaderValue, TRANSFER_ENCODING, UPGRADE};
use actix_web::web::{Bytes, BytesMut};
use futures_util::StreamExt;
use tokio::time::Instant;

use super::early::announced_bytes;
use super::error::ApiError;
use super::turn::Turn;
use crate::alarm::Alarm;

/// A body that takes longer than this to arrive is given up.
const TIME: Duration = Duration::from_secs(30);
/// And one of which nothing arrives for so long.
const SILENCE: Duration = Duration::from_secs(10);
/// A body that goes on for longer is not worth reading on: the connection is closed instead.
const DRAIN_BYTES: usize = 64 * 1_048_576;
const DRAIN_TIME: Duration = Duration::from_secs(10);

/// A body, or why there is none.
pub(crate) enum Body {
    Whole(Bytes),
    TooLarge { limit_bytes: u64, read_bytes: u64 },
    Unreadable,
}

impl Body {
    /// What most bodies may have.
    pub(crate) const LIMIT_BYTES: u64 = 2 * 1_048_576;

    /// That of a request whose body nobody reads.
    pub(super) fn none() -> Self {
        Self::Whole(Bytes::new())
    }

    /// The bytes.
    ///
    /// # Errors
    /// [`ApiError::BodyTooLarge`] or [`ApiError::BodyUnreadable`].
    pub(crate) fn bytes(&self) -> Result<&Bytes, ApiError> {
        match self {
            Self::Whole(bytes) => Ok(bytes),
            Self::TooLarge {
                limit_bytes,
                read_bytes,
            } => Err(ApiError::BodyTooLarge {
                limit_bytes: *limit_bytes,
                read_bytes: *read_bytes,
            }),
            Self::Unreadable => Err(ApiError::BodyUnreadable),
        }
    }

    /// Reads the body of a request to its end, and leaves the request without one.
    pub(crate) async fn read(request: &mut ServiceRequest, limit_bytes: u64) -> Self {
        let headers = request.headers();
        let upgrade = headers.get(UPGRADE).map(HeaderValue::as_bytes);
        if upgrade.is_some_and(|protocol| protocol.eq_ignore_ascii_case(b"websocket")) {
            // actix takes all that follows on the connection for the body then
            return Self::Unreadable;
        }
        if !headers.contains_key(CONTENT_LENGTH) && !headers.contains_key(TRANSFER_ENCODING) {
            return Self::Whole(Bytes::new());
        }
        let announced_bytes = announced_bytes(request).unwrap_or_default();
        let alarm = request.conn_data::<BodyAlarm>().cloned();
        let turn = request.conn_data::<Turn>().cloned();
        let payload = Arriving {
            payload: request.take_payload(),
            alarm: alarm.unwrap_or_default(),
            turn: turn.unwrap_or_default(),
        };
        if announced_bytes > limit_bytes {
            return Self::refuse(payload, limit_bytes, announced_bytes).await;
        }
        Self::collect(payload, limit_bytes).await
    }

    /// Of what is announced to be too large nothing is kept, and nothing read that would not be read
    /// to its end.
    async fn refuse(payload: Arriving, limit_bytes: u64, announced_bytes: u64) -> Self {
        if announced_bytes > DRAIN_BYTES as u64 {
            let read_bytes = 0;
            return Self::TooLarge {
                limit_bytes,
                read_bytes,
            };
        }
        Self::drain(payload, limit_bytes, 0).await
    }

    async fn collect(mut payload: Arriving, limit_bytes: u64) -> Self {
        let mut end = None;
        let mut first = Bytes::new();
        let mut rest = BytesMut::new();
        loop {
            let chunk = match payload.next(TIME, &mut end).await {
                Ok(None) => break,
                Ok(Some(Ok(chunk))) => chunk,
                Ok(Some(Err(_))) | Err(_) => return Self::Unreadable,
            };
            let read_bytes = first.len() + rest.len() + chunk.len();
            if read_bytes as u64 > limit_bytes {
                drop((first, rest));
                return Self::drain(payload, limit_bytes, read_bytes).await;
            }
            if first.is_empty() {
                first = chunk;
            } else {
                rest.extend_from_slice(&chunk);
            }
        }
        if rest.is_empty() {
            return Self::Whole(first);
        }
        let mut whole = BytesMut::with_capacity(first.len() + rest.len());
        whole.extend_from_slice(&first);
        whole.extend_from_slice(&rest);
        Self::Whole(whole.freeze())
    }

    async fn drain(mut payload: Arriving, limit_bytes: u64, mut read_bytes: usize) -> Self {
        let mut end = None;
        // whether the end is reached changes nothing but how likely the answer arrives
        while let Ok(Some(Ok(chunk))) = payload.next(DRAIN_TIME, &mut end).await {
            read_bytes += chunk.len();
            if read_bytes > DRAIN_BYTES {
                break;
            }
        }
        Self::TooLarge {
            limit_bytes,
            read_bytes: read_bytes as u64,
        }
    }
}

/// Kept with a connection, which has a body at a time, if any: a timer of its own for each would cost
/// more than to read it.
#[derive(Debug, Clone, Default)]
pub struct BodyAlarm(Rc<RefCell<Alarm>>);

/// A body that is read.
struct Arriving {
    payload: Payload,
    alarm: BodyAlarm,
    turn: Turn,
}

/// It took too long.
struct Late;

impl Arriving {
    /// What comes next, before the silence gets too long and all takes longer than that, which counts
    /// from when it was first waited for.
    async fn next(
        &mut self,
        most: Duration,
        end: &mut Option<Instant>,
    ) -> Result<Option<Result<Bytes, PayloadError>>, Late> {
        let mut next_by = None;
        let next = poll_fn(|cx| {
            if let Poll::Ready(next) = self.payload.poll_next_unpin(cx) {
                return Poll::Ready(Ok(next));
            }
            self.turn.want_body(true);
            let next_by = *next_by.get_or_insert_with(|| {
                let now = Instant::now();
                (now + SILENCE).min(*end.get_or_insert(now + most))
            });
            let mut alarm = self.alarm.0.borrow_mut();
            alarm.poll(cx, next_by).map(|()| Err(Late))
        });
        let next = next.await;
        self.turn.want_body(false);
        next
    }
}
