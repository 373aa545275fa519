//! Reads request bodies completely before a handler runs.
//!
//! A client that is still sending a body often loses the connection before it receives an early error response. The
//! server therefore reads even a rejected body to its end, and discards bytes beyond the limit. It does not store any
//! part of a body if the announced length is too large. It stops reading if the body is longer than `DRAIN_BYTES`, if
//! the client is too slow, or if no memory is left.

use std::cell::RefCell;
use std::fmt;
use std::future::poll_fn;
use std::mem;
use std::rc::Rc;
use std::task::{Poll, ready};
use std::time::Duration;

use actix_web::HttpMessage;
use actix_web::dev::{Payload, RequestHead, ServiceRequest};
use actix_web::error::PayloadError;
use actix_web::http::header::{CONTENT_LENGTH, TRANSFER_ENCODING, UPGRADE};
use actix_web::web::Bytes;
use futures_util::StreamExt;
use tokio::time::Instant;

use super::body_memory::{BodyMemory, Evicted, SLOW_CHECK_INTERVAL, Share};
use crate::connection_state::ConnectionState;
use threadkeep_domain::BODY_MAX_BYTES;
use threadkeep_store::Alarm;
use threadkeep_web::ApiError;

/// Time limit for a body.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);
/// Time limit for a pause within a body.
const IDLE_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum size of a rejected body that is read to its end. For a longer body, the server closes the connection.
const DRAIN_BYTES: usize = 64 * 1_048_576;
/// Time limit for reading a rejected body.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(10);
/// Time limit for a body that is waiting for memory.
const MEMORY_TIMEOUT: Duration = Duration::from_secs(5);
const BLOCK_BYTES: usize = 32_768;

/// A body, or the reason why the body is not available. `Debug` hides the content.
pub enum Body {
    Whole {
        bytes: Bytes,
        /// Reserves the memory of `bytes` until the request is done.
        _share: Option<Share>,
    },
    TooLarge {
        limit_bytes: u64,
        /// Number of bytes read, including discarded bytes.
        read_bytes: u64,
    },
    /// The body is incomplete, or its framing is malformed.
    Unreadable,
    Overloaded,
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Whole { .. } => "Whole",
            Self::TooLarge { .. } => "TooLarge",
            Self::Unreadable => "Unreadable",
            Self::Overloaded => "Overloaded",
        })
    }
}

impl Body {
    /// Size limit for bodies other than entries and imports.
    pub const LIMIT_BYTES: u64 = BODY_MAX_BYTES;

    pub(crate) fn none() -> Self {
        Self::Whole {
            bytes: Bytes::new(),
            _share: None,
        }
    }

    pub fn bytes(&self) -> Result<&Bytes, ApiError> {
        match self {
            Self::Whole { bytes, .. } => Ok(bytes),
            Self::TooLarge {
                limit_bytes,
                read_bytes,
            } => Err(ApiError::BodyTooLarge {
                limit_bytes: *limit_bytes,
                read_bytes: *read_bytes,
            }),
            Self::Unreadable => Err(ApiError::BodyUnreadable),
            Self::Overloaded => Err(ApiError::Overloaded),
        }
    }

    /// Takes the body out of the request and reads the whole body.
    pub async fn read(request: &mut ServiceRequest, limit_bytes: u64) -> Self {
        if is_endless(request.head()) {
            return Self::Unreadable;
        }
        let headers = request.headers();
        if !headers.contains_key(CONTENT_LENGTH) && !headers.contains_key(TRANSFER_ENCODING) {
            return Self::none();
        }
        let announced_bytes = announced_bytes(request).unwrap_or_default();
        let alarm = request.conn_data::<BodyAlarm>().cloned();
        let connection = request.conn_data::<ConnectionState>().cloned();
        let memory = request.conn_data::<BodyMemory>().cloned();
        let payload = IncomingBody {
            payload: request.take_payload(),
            alarm: alarm.unwrap_or_default(),
            connection: connection.unwrap_or_default(),
            share: memory.unwrap_or_default().share(),
        };
        if announced_bytes > limit_bytes {
            return Self::refuse(payload, limit_bytes, announced_bytes).await;
        }
        Self::collect(payload, limit_bytes).await
    }

    async fn refuse(payload: IncomingBody, limit_bytes: u64, announced_bytes: u64) -> Self {
        if announced_bytes > DRAIN_BYTES as u64 {
            let read_bytes = 0;
            return Self::TooLarge {
                limit_bytes,
                read_bytes,
            };
        }
        Self::drain(payload, limit_bytes, 0).await
    }

    async fn collect(mut payload: IncomingBody, limit_bytes: u64) -> Self {
        let mut end = None;
        let mut chunks = Chunks::default();
        loop {
            let chunk = match payload.next(BODY_TIMEOUT, &mut end).await {
                Ok(None) => break,
                Ok(Some(Ok(chunk))) => chunk,
                Ok(Some(Err(_))) | Err(Fault::TimedOut) => return Self::Unreadable,
                Err(Fault::Evicted) => return Self::Overloaded,
            };
            let read_bytes = chunks.len + chunk.len();
            if read_bytes as u64 > limit_bytes {
                drop(chunks);
                return Self::drain(payload, limit_bytes, read_bytes).await;
            }
            if payload.reserve(chunk.len()).await.is_err() {
                return Self::Overloaded;
            }
            chunks.push(chunk);
        }
        let mut share = payload.share;
        share.complete();
        Self::Whole {
            bytes: chunks.join(),
            _share: Some(share),
        }
    }

    async fn drain(mut payload: IncomingBody, limit_bytes: u64, mut read_bytes: usize) -> Self {
        let mut end = None;
        payload.share.clear();
        // ignore errors, because the server discards these bytes and reads them only to help the response arrive
        while let Ok(Some(Ok(chunk))) = payload.next(DRAIN_TIMEOUT, &mut end).await {
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

/// Returns whether actix treats all bytes after the request's head as the body, as it does for WebSockets.
pub fn is_endless(head: &RequestHead) -> bool {
    let upgrades = head.headers().get_all(UPGRADE);
    upgrades
        .map(|value| value.as_bytes().trim_ascii())
        .any(|value| value.eq_ignore_ascii_case(b"websocket"))
}

/// Timer that all bodies of a connection share, because a new timer for each body would cost more than reading the
/// body. Only one body arrives at a time.
#[derive(Debug, Clone, Default)]
pub struct BodyAlarm(Rc<RefCell<Alarm>>);

pub(super) fn announced_bytes(request: &ServiceRequest) -> Option<u64> {
    let length = request.headers().get(CONTENT_LENGTH)?;
    length.to_str().ok()?.trim().parse().ok()
}

/// Received chunks of a body. If there is only one chunk, it is not copied. Otherwise, the chunks are copied into
/// blocks, which are joined when the body is complete.
#[derive(Default)]
struct Chunks {
    first: Bytes,
    blocks: Vec<Vec<u8>>,
    len: usize,
}

impl Chunks {
    fn push(&mut self, chunk: Bytes) {
        if self.len == 0 {
            self.len = chunk.len();
            self.first = chunk;
            return;
        }
        self.len += chunk.len();
        let first = mem::take(&mut self.first);
        self.copy(&first);
        self.copy(&chunk);
    }

    fn copy(&mut self, mut chunk: &[u8]) {
        while !chunk.is_empty() {
            let spare_bytes = self
                .blocks
                .last()
                .map_or(0, |last| BLOCK_BYTES - last.len());
            if spare_bytes == 0 {
                self.blocks.push(Vec::with_capacity(BLOCK_BYTES));
            }
            if let Some(last) = self.blocks.last_mut() {
                let (head, tail) = chunk.split_at(chunk.len().min(BLOCK_BYTES - last.len()));
                last.extend_from_slice(head);
                chunk = tail;
            }
        }
    }

    fn join(self) -> Bytes {
        if self.blocks.is_empty() {
            return self.first;
        }
        let mut joined = Vec::with_capacity(self.len);
        for block in self.blocks {
            joined.extend_from_slice(&block);
        }
        joined.into()
    }
}

struct IncomingBody {
    payload: Payload,
    alarm: BodyAlarm,
    connection: ConnectionState,
    share: Share,
}

enum Fault {
    TimedOut,
    Evicted,
}

impl IncomingBody {
    /// Returns the next chunk, or `None` at the end of the body. Fails if the client is silent for [`IDLE_TIMEOUT`], or
    /// after `end`. If `end` is `None`, the first wait sets `end` to `limit` from now.
    async fn next(
        &mut self,
        limit: Duration,
        end: &mut Option<Instant>,
    ) -> Result<Option<Result<Bytes, PayloadError>>, Fault> {
        let mut next_by = None;
        let next = poll_fn(|cx| {
            if let Poll::Ready(next) = self.payload.poll_next_unpin(cx) {
                return Poll::Ready(Ok(next));
            }
            if let Err(Evicted) = self.share.await_client(cx) {
                return Poll::Ready(Err(Fault::Evicted));
            }
            self.connection.set_waiting_for_body(true);
            let next_by = *next_by.get_or_insert_with(|| {
                let now = Instant::now();
                (now + IDLE_TIMEOUT).min(*end.get_or_insert(now + limit))
            });
            let mut alarm = self.alarm.0.borrow_mut();
            alarm.poll(cx, next_by).map(|()| Err(Fault::TimedOut))
        });
        let next = next.await;
        self.connection.set_waiting_for_body(false);
        next
    }

    /// Reserves memory for a received chunk. Waits until memory is free, and does not read from the client while it
    /// waits. Fails after [`MEMORY_TIMEOUT`].
    async fn reserve(&mut self, bytes: usize) -> Result<(), Evicted> {
        let mut end = None;
        poll_fn(|cx| {
            loop {
                let now = Instant::now();
                if let Poll::Ready(reserved) = self.share.poll_reserve(cx, bytes as u64, now) {
                    return Poll::Ready(reserved);
                }
                let end = *end.get_or_insert(now + MEMORY_TIMEOUT);
                if now >= end {
                    return Poll::Ready(Err(Evicted));
                }
                self.share.drop_slow(now);
                let mut alarm = self.alarm.0.borrow_mut();
                ready!(alarm.poll(cx, end.min(now + SLOW_CHECK_INTERVAL)));
            }
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_joined_in_order_with_less_than_one_spare_block() {
        let body: Vec<u8> = (0..1_000_000_u32).map(|number| number as u8).collect();
        for chunk_bytes in [1, 1_000, 8_192, 999_999, 1_000_000] {
            let mut chunks = Chunks::default();
            for chunk in body.chunks(chunk_bytes) {
                chunks.push(Bytes::copy_from_slice(chunk));
            }

            assert_eq!(chunks.len, body.len());
            let block_bytes: usize = chunks.blocks.iter().map(Vec::capacity).sum();
            assert!(block_bytes < body.len() + BLOCK_BYTES);
            assert!(chunks.join() == body);
        }
    }
}
