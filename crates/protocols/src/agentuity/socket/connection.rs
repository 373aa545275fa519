//! Runs one socket until it closes, as a task on the worker that accepted the connection.

use std::cell::RefCell;
use std::future::Future;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;

use actix_web::web::Payload;
use bytes::Bytes;
use futures_util::StreamExt as _;
use tokio::task::yield_now;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::authentication::{Verdict, judge};
use super::counters::Open;
use super::ending::Ending;
use super::error::RequestError;
use super::frames::{Message, Reader};
use super::id::RequestId;
use super::in_flight::InFlight;
use super::limits::{FIRST_MESSAGE_MAX_BYTES, MESSAGE_MAX_BYTES, SocketTiming, YIELD_BYTES};
use super::outbox::Outbox;
use super::pings::Pings;
use super::reply::{ADMITTED, KEY_REJECTED};
use super::request::{Request, Unreadable};
use super::responder::Responder;
use super::silence::{Due, Silence};
use crate::agentuity::Agentuity;
use threadkeep_identity::ApiKeys;
use threadkeep_service::Copies;

pub(super) struct Connection {
    payload: Payload,
    reader: Reader,
    in_flight: InFlight,
    silence: Silence,
    responder: Rc<Responder>,
    api_keys: ApiKeys,
    max_keys: u32,
    timing: SocketTiming,
    stop: CancellationToken,
    _open: Open,
}

impl Connection {
    pub(super) fn new(protocol: &Agentuity, payload: Payload, outbox: Outbox) -> Self {
        let timing = protocol.timing;
        let responder = Responder {
            copies: Copies::new(&protocol.threads, timing.client_timeout),
            outbox,
            pings: RefCell::new(Pings::new()),
            counters: Arc::clone(&protocol.counters),
        };
        Self {
            payload,
            reader: Reader::new(FIRST_MESSAGE_MAX_BYTES),
            in_flight: InFlight::default(),
            silence: Silence::new(timing),
            _open: Open::count(&protocol.counters),
            responder: Rc::new(responder),
            api_keys: protocol.api_keys.clone(),
            max_keys: protocol.threads.policy().max_keys,
            timing,
            stop: protocol.events.streams_end(),
        }
    }

    /// Runs until either side closes the socket. Then finishes all requests that were received, even if the client
    /// never sees the answers.
    ///
    /// The app answers its own user before it saves the thread, so a dropped save would lose what the user has seen.
    pub(super) async fn run(mut self) {
        let ending = self.exchange_messages().await;
        tracing::debug!(%ending, "socket closed");
        let outbox = &self.responder.outbox;
        if let Some(frame) = ending.frame() {
            outbox.close(frame);
        }
        outbox.end();
        self.finish().await;
    }

    async fn exchange_messages(&mut self) -> Ending {
        if let Err(ending) = self.authenticate().await {
            return ending;
        }
        let stop = self.stop.clone();
        let ending = self.serve(stop.cancelled()).await;
        if matches!(ending, Ending::GoingAway) {
            self.go_away(&ending).await;
        }
        ending
    }

    async fn authenticate(&mut self) -> Result<(), Ending> {
        let (limit, stop) = (self.timing.authentication, self.stop.clone());
        let first = tokio::select! {
            first = timeout(limit, self.first_text()) => first.unwrap_or(Err(Ending::Late))?,
            () = stop.cancelled() => return Err(Ending::GoingAway),
        };
        match judge(&first, &self.api_keys) {
            Verdict::Admitted => {
                self.reader.allow(MESSAGE_MAX_BYTES);
                self.silence.record_activity();
                self.send(ADMITTED).await;
                Ok(())
            }
            Verdict::KeyRejected => {
                self.responder.counters.rejected.inc();
                self.send(KEY_REJECTED).await;
                Err(Ending::NotAdmitted)
            }
            Verdict::Unexpected => Err(Ending::NotAdmitted),
        }
    }

    async fn send(&self, text: &str) {
        self.responder.outbox.text(text.len(), || text.into()).await;
    }

    async fn first_text(&mut self) -> Result<Bytes, Ending> {
        loop {
            match self.reader.next()? {
                Some(Message::Text(text)) => return Ok(text),
                Some(Message::Refused { why, .. }) => {
                    let is_too_large = matches!(why, RequestError::TooLarge { .. });
                    return Err(if is_too_large {
                        Ending::TooLarge
                    } else {
                        Ending::NotAdmitted
                    });
                }
                Some(Message::Ping(bytes)) => self.responder.outbox.pong(bytes).await,
                Some(Message::Pong(_)) => {}
                Some(Message::Close(reason)) => return Err(Ending::Closed(reason)),
                None => match self.payload.next().await {
                    Some(Ok(bytes)) => self.reader.push(&bytes),
                    _ => return Err(Ending::Lost),
                },
            }
        }
    }

    /// Reads and starts requests until `until` resolves or the connection ends. Stops reading while too many requests
    /// are in flight, which slows the client down.
    async fn serve(&mut self, until: impl Future<Output = ()>) -> Ending {
        let mut until = pin!(until);
        loop {
            let has_capacity = self.in_flight.has_capacity();
            if has_capacity {
                match self.reader.next() {
                    Ok(Some(Message::Close(reason))) => return Ending::Closed(reason),
                    Ok(Some(message)) => {
                        if self.handle(message) > YIELD_BYTES {
                            yield_now().await;
                        }
                        continue;
                    }
                    Ok(None) => {}
                    Err(error) => return error.into(),
                }
            } else {
                // the client does not count as silent while the server is not reading
                self.silence.record_activity();
            }
            tokio::select! {
                () = self.in_flight.settle() => {
                    if self.responder.pings.borrow().has_unconfirmed() {
                        self.responder.ping();
                    }
                }
                received = self.payload.next(), if has_capacity => match received {
                    Some(Ok(bytes)) => {
                        self.reader.push(&bytes);
                        self.silence.record_activity();
                    }
                    _ => return Ending::Lost,
                },
                due = self.silence.due(&self.responder) => match due {
                    Due::Ping => self.responder.ping(),
                    Due::Silent => return Ending::Silent,
                    Due::Stuck => return Ending::Stuck,
                },
                () = &mut until => return Ending::GoingAway,
            }
        }
    }

    /// Starts to process a message. Returns the size of a text message in bytes, or 0 for any other message.
    fn handle(&mut self, message: Message) -> usize {
        match message {
            Message::Text(text) => {
                self.handle_text(&text);
                return text.len();
            }
            Message::Refused { why, start } => {
                let id = RequestId::find_in(&start);
                self.refuse(Unreadable { id, why });
            }
            Message::Ping(bytes) => {
                let responder = Rc::clone(&self.responder);
                let job = async move { responder.outbox.pong(bytes).await };
                self.in_flight.push(None, 0, job);
            }
            Message::Pong(bytes) => self.responder.pong(&bytes),
            Message::Close(_) => {}
        }
        0
    }

    fn handle_text(&mut self, text: &[u8]) {
        match Request::read(text, self.max_keys) {
            Ok(request) => {
                let (responder, thread) = (Rc::clone(&self.responder), request.thread);
                let times = responder.request_times();
                let job = async move { responder.answer(request, times).await };
                self.in_flight.push(Some(thread), text.len(), job);
            }
            Err(unreadable) => self.refuse(unreadable),
        }
    }

    fn refuse(&mut self, unreadable: Unreadable) {
        let responder = Rc::clone(&self.responder);
        let job = async move { responder.refuse(unreadable).await };
        self.in_flight.push(None, 0, job);
    }

    /// Answers the requests in flight and sends the close frame. Then executes the messages that the client sent before
    /// it received the close frame.
    async fn go_away(&mut self, ending: &Ending) {
        self.finish().await;
        if let Some(frame) = ending.frame() {
            self.responder.outbox.close(frame);
        }
        let close_grace = self.timing.close_grace;
        self.serve(sleep(close_grace)).await;
        self.finish().await;
    }

    async fn finish(&mut self) {
        let all = self.in_flight.settle_all();
        if timeout(self.timing.finish, all).await.is_err() {
            tracing::warn!("requests of a closed socket were dropped");
        }
    }
}
