//! Receives a client's messages, even while the server is answering an earlier message.

use std::collections::VecDeque;
use std::future::pending;
use std::time::Duration;

use actix_ws::{AggregatedMessage, AggregatedMessageStream, Session};
use bytes::Bytes;
use tokio::time::{Instant, sleep_until};

/// Maximum number and total size of received messages that are waiting for an answer. When either limit is reached, the
/// server stops reading until a message is answered.
const WAITING_MAX: usize = 4;
const WAITING_BYTES: usize = 1_048_576;
const PING_EVERY: Duration = Duration::from_secs(20);
const SILENCE_MAX: Duration = Duration::from_secs(60);

/// The client disconnected or violated the protocol.
#[derive(Debug, Clone, Copy)]
pub(super) struct Gone;

pub(super) struct MessageReceiver {
    messages: AggregatedMessageStream,
    session: Session,
    waiting: VecDeque<Bytes>,
    last_received: Instant,
    ping_at: Instant,
}

impl MessageReceiver {
    pub(super) fn new(messages: AggregatedMessageStream, session: Session) -> Self {
        let now = Instant::now();
        Self {
            messages,
            session,
            waiting: VecDeque::new(),
            last_received: now,
            ping_at: now + PING_EVERY,
        }
    }

    /// Returns the next message. Cancel-safe.
    pub(super) async fn next(&mut self) -> Result<Bytes, Gone> {
        loop {
            if let Some(text) = self.waiting.pop_front() {
                return Ok(text);
            }
            self.listen().await?;
        }
    }

    /// Awaits `work`, and queues the messages that arrive meanwhile.
    pub(super) async fn receive_during<T>(
        &mut self,
        work: impl Future<Output = T>,
    ) -> Result<T, Gone> {
        tokio::pin!(work);
        loop {
            tokio::select! {
                biased;
                done = &mut work => return Ok(done),
                received = self.listen() => received?,
            }
        }
    }

    /// Receives one message, or pings the client if a ping is due. Cancel-safe.
    async fn listen(&mut self) -> Result<(), Gone> {
        let waiting_bytes: usize = self.waiting.iter().map(Bytes::len).sum();
        let has_capacity = self.waiting.len() < WAITING_MAX && waiting_bytes < WAITING_BYTES;
        if !has_capacity {
            // the client does not count as silent while the server is not reading
            self.last_received = Instant::now();
        }
        let message = async {
            match has_capacity {
                true => self.messages.recv().await,
                false => pending().await,
            }
        };
        let message = tokio::select! {
            message = message => message,
            () = sleep_until(self.ping_at) => {
                self.ping_at = Instant::now() + PING_EVERY;
                let is_silent = self.last_received.elapsed() > SILENCE_MAX;
                // does not wait if the output queue is full, because the queued messages show that the server is alive
                let pinged = tokio::time::timeout(Duration::ZERO, self.session.ping(b"")).await;
                return match (is_silent, pinged) {
                    (true, _) | (_, Ok(Err(_))) => Err(Gone),
                    _ => Ok(()),
                };
            }
        };
        self.last_received = Instant::now();
        match message {
            Some(Ok(AggregatedMessage::Text(text))) => self.waiting.push_back(text.into_bytes()),
            Some(Ok(AggregatedMessage::Binary(bytes))) => self.waiting.push_back(bytes),
            Some(Ok(AggregatedMessage::Ping(bytes))) => {
                let pong = self.session.pong(&bytes);
                let _ = tokio::time::timeout(Duration::ZERO, pong).await;
            }
            Some(Ok(AggregatedMessage::Pong(_))) => {}
            Some(Ok(AggregatedMessage::Close(_)) | Err(_)) | None => return Err(Gone),
        }
        Ok(())
    }
}
