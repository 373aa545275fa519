//! Streams a response as lines or server-sent events.

use std::fmt::Write;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use actix_web::HttpResponse;
use bytes::Bytes;
use tokio::time::{sleep, timeout};

use super::form::Form;
use super::transcript::{Line, Transcript};
use crate::modelrelay::RelayError;
use crate::modelrelay::lines::ascii;
use threadkeep_http::{cut_at_error, mark_replay, streamed};
use threadkeep_responses::{NewResponse, ResponseError, ResponseService, ResponseStream};

/// Maximum silence before a keepalive.
const SILENCE_MAX: Duration = Duration::from_secs(5);
/// How long the server waits for a response to begin before it sends the headers and the first line anyway. Clients
/// retry if they receive no response headers within five seconds.
const FIRST_LINE_WAIT_MAX: Duration = Duration::from_secs(1);
/// Number of buffered bytes at which lines are sent.
const CHUNK_BYTES: usize = 32 * 1_024;

type Beginning = Pin<Box<dyn Future<Output = Result<ResponseStream, Arc<ResponseError>>>>>;

struct Feed {
    form: Form,
    transcript: Transcript,
    source: Source,
}

enum Source {
    /// The response waits until a different response ends.
    Beginning(Beginning),
    Running(Box<ResponseStream>),
    Over,
}

/// Runs a response and streams its lines. If an error interrupts the stream, the connection is closed early.
pub(super) async fn respond(
    responses: ResponseService,
    new: NewResponse,
    form: Form,
) -> Result<HttpResponse, RelayError> {
    let transcript = Transcript::new(new.id, &new.request);
    let mut beginning: Beginning = Box::pin(async move { responses.stream(new).await });
    let begun = timeout(FIRST_LINE_WAIT_MAX, &mut beginning).await;
    let mut response = streamed(form.media_type());
    let source = match begun {
        Ok(begun) => {
            let events = begun?;
            mark_replay(&mut response, events.is_replay());
            Source::Running(Box::new(events))
        }
        Err(_) => Source::Beginning(beginning),
    };
    let feed = Feed {
        form,
        transcript,
        source,
    };
    Ok(cut_at_error(response, feed, Feed::next))
}

impl Feed {
    /// Returns the next lines, or `None` at the end.
    async fn next(&mut self) -> Result<Option<Bytes>, ResponseError> {
        loop {
            match &mut self.source {
                Source::Beginning(beginning) => {
                    if !self.transcript.has_started() {
                        let start = self.transcript.start();
                        return Ok(Some(self.chunk([start])));
                    }
                    match timeout(SILENCE_MAX, beginning).await {
                        Err(_) => return Ok(Some(self.chunk([Line::keepalive()]))),
                        Ok(Ok(events)) => self.source = Source::Running(Box::new(events)),
                        Ok(Err(error)) => {
                            self.source = Source::Over;
                            let error = Line::error(&RelayError::Response(error));
                            return Ok(Some(self.chunk([error])));
                        }
                    }
                }
                Source::Running(events) => {
                    let mut lines = Vec::new();
                    let mut bytes = 0;
                    loop {
                        let item = tokio::select! {
                            item = events.next() => item?,
                            () = sleep(SILENCE_MAX) => {
                                return Ok(Some(self.chunk([Line::keepalive()])));
                            }
                        };
                        let Some((_, item)) = item else {
                            self.source = Source::Over;
                            break;
                        };
                        for line in self.transcript.lines(&item) {
                            bytes += write(&mut lines, self.form, &line);
                        }
                        if bytes >= CHUNK_BYTES || (bytes > 0 && !events.is_ready()) {
                            break;
                        }
                    }
                    if bytes > 0 {
                        return Ok(Some(lines.concat().into()));
                    }
                }
                Source::Over => return Ok(None),
            }
        }
    }

    fn chunk(&self, lines: [Line; 1]) -> Bytes {
        let mut texts = Vec::new();
        for line in &lines {
            write(&mut texts, self.form, line);
        }
        texts.concat().into()
    }
}

/// Appends the text of a line, and returns its size.
fn write(texts: &mut Vec<String>, form: Form, line: &Line) -> usize {
    let json = ascii(&line.json.to_string());
    let mut text = String::with_capacity(json.len() + 64);
    match form {
        Form::Events => write!(text, "event: {}\ndata: {json}\n\n", line.kind),
        Form::Lines | Form::Whole => writeln!(text, "{json}"),
    }
    .expect("a string takes any text");
    let bytes = text.len();
    texts.push(text);
    bytes
}
