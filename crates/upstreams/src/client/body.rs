use std::future;
use std::ops::ControlFlow;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::{Stream, StreamExt as _, stream};
use reqwest::Response;
use sse_stream::{Error, SseStream};
use tokio::time::timeout;

use super::failure::Failure;
use super::outlet::Outlet;
use crate::codec::{Codec, EventReader};
use threadkeep_responses::ModelAnswer;

/// Maximum size of a stream, as a multiple of the maximum size of its answer. The multiple is large because servers
/// send one event per token, and wrap each token in about 250 bytes.
const STREAM_FACTOR: u64 = 256;
/// Maximum size of the data that is read after the last event of a stream so that the connection can be reused.
const REST_MAX_BYTES: u64 = 65_536;
const REST_TIMEOUT: Duration = Duration::from_secs(1);

struct Body {
    response: Response,
    bytes_left: u64,
}

impl Body {
    /// Returns the next chunk, or `None` at the end. A body over the limit is a permanent failure, because a retry
    /// would not make it shorter.
    async fn chunk(&mut self) -> Result<Option<Bytes>, Failure> {
        // an error means that the body was cut off
        let chunk = self.response.chunk().await;
        let chunk = chunk.map_err(|_| Failure::malformed())?;
        let bytes = chunk.as_ref().map_or(0, Bytes::len);
        let left = self.bytes_left.checked_sub(bytes as u64);
        self.bytes_left = left.ok_or_else(Failure::too_long)?;
        Ok(chunk)
    }

    async fn read_to_end(&mut self, bytes: &mut Vec<u8>) -> Result<(), Failure> {
        while let Some(chunk) = self.chunk().await? {
            bytes.extend_from_slice(&chunk);
        }
        Ok(())
    }
}

pub(super) async fn read_whole(response: Response, max_bytes: u64) -> Result<Vec<u8>, Failure> {
    let length = response.content_length();
    if length.is_some_and(|bytes| bytes > max_bytes) {
        return Err(Failure::too_long());
    }
    let mut body = Body {
        response,
        bytes_left: max_bytes,
    };
    let mut bytes = Vec::new();
    body.read_to_end(&mut bytes).await?;
    Ok(bytes)
}

/// Reads the response to a streaming request, and sends the pieces of the answer. A response that begins with `{` is a
/// JSON object from an upstream that does not stream, regardless of its `Content-Type`.
pub(super) async fn read_streamed<R: EventReader>(
    response: Response,
    max_bytes: u64,
    codec: &Codec<'_, R>,
    outlet: &mut Outlet<'_>,
) -> Result<ModelAnswer, Failure> {
    let mut body = Body {
        response,
        bytes_left: max_bytes.saturating_mul(STREAM_FACTOR),
    };
    let begin = loop {
        let chunk = body.chunk().await?.ok_or_else(Failure::malformed)?;
        // skips blank lines before the first event
        if !chunk.iter().all(u8::is_ascii_whitespace) {
            break chunk;
        }
    };
    if begin.trim_ascii_start().starts_with(b"{") {
        let left = max_bytes.checked_sub(begin.len() as u64);
        body.bytes_left = left.ok_or_else(Failure::too_long)?;
        let mut bytes = begin.to_vec();
        body.read_to_end(&mut bytes).await?;
        return (codec.whole)(&bytes);
    }
    let unread = AtomicU64::new(begin.len() as u64);
    let chunks = chunks(&mut body, max_bytes, &unread);
    let begin = stream::once(future::ready(Ok(begin)));
    let reader = (codec.stream)(max_bytes);
    let answer = read_events(begin.chain(chunks), &unread, reader, outlet).await?;
    tokio::spawn(timeout(REST_TIMEOUT, read_rest(body)));
    Ok(answer)
}

/// Streams the chunks of a body. Fails if an event is larger than `max_bytes`. `unread` counts the bytes since the last
/// complete event.
fn chunks<'a>(
    body: &'a mut Body,
    max_bytes: u64,
    unread: &'a AtomicU64,
) -> impl Stream<Item = Result<Bytes, Failure>> + Send + 'a {
    stream::try_unfold(body, move |body| async move {
        if unread.load(Ordering::Relaxed) > max_bytes {
            return Err(Failure::too_long());
        }
        let chunk = body.chunk().await?;
        Ok(chunk.map(|chunk| {
            unread.fetch_add(chunk.len() as u64, Ordering::Relaxed);
            (chunk, body)
        }))
    })
}

async fn read_events(
    chunks: impl Stream<Item = Result<Bytes, Failure>> + Send,
    unread: &AtomicU64,
    mut reader: impl EventReader,
    outlet: &mut Outlet<'_>,
) -> Result<ModelAnswer, Failure> {
    let mut events = pin!(SseStream::from_bytes_stream(chunks));
    while let Some(event) = events.next().await {
        let event = event.map_err(failure)?;
        unread.store(0, Ordering::Relaxed);
        let data = event.data.unwrap_or_default();
        if data.trim().is_empty() {
            continue;
        }
        let read = reader.event(event.event.as_deref(), &data);
        outlet.send(reader.pieces()).await;
        if let ControlFlow::Break(()) = read? {
            break;
        }
    }
    let (answer, mut pieces) = reader.end()?;
    outlet.send(&mut pieces).await;
    Ok(answer)
}

fn failure(error: Error) -> Failure {
    match error {
        Error::Body(error) => error
            .downcast()
            .map_or_else(|_| Failure::malformed(), |failure| *failure),
        _ => Failure::malformed(),
    }
}

async fn read_rest(mut body: Body) {
    body.bytes_left = REST_MAX_BYTES;
    while let Ok(Some(_)) = body.chunk().await {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use threadkeep_responses::{Piece, TextKind, UpstreamError};

    #[derive(Default)]
    struct Lines(Vec<Piece>);

    impl EventReader for Lines {
        fn event(&mut self, name: Option<&str>, data: &str) -> Result<ControlFlow<()>, Failure> {
            let text = format!("{}={data}", name.unwrap_or_default());
            self.0.push(Piece::Text {
                part: 0,
                kind: TextKind::Text,
                text_index: 0,
                text,
            });
            Ok(match data {
                "end" => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            })
        }

        fn pieces(&mut self) -> &mut Vec<Piece> {
            &mut self.0
        }

        fn end(self) -> Result<(ModelAnswer, Vec<Piece>), Failure> {
            Err(Failure::temporary(UpstreamError::Timeout))
        }
    }

    async fn read(chunks: Vec<&[u8]>) -> Vec<String> {
        let (sender, mut receiver) = tokio::sync::mpsc::channel(100);
        let chunks = chunks
            .into_iter()
            .map(|chunk| Ok(Bytes::copy_from_slice(chunk)));
        let mut outlet = Outlet::new(Some(&sender));
        let unread = AtomicU64::new(0);
        let end = read_events(stream::iter(chunks), &unread, Lines::default(), &mut outlet).await;
        drop(sender);
        let mut lines = Vec::new();
        while let Some(Piece::Text { text, .. }) = receiver.recv().await {
            lines.push(text);
        }
        if end == Err(Failure::malformed()) {
            lines.push("malformed".into());
        }
        lines
    }

    #[tokio::test]
    async fn events_do_not_depend_on_chunk_boundaries() {
        for (text, expected) in [
            (
                "\u{feff}: hi\n\ndata: ä1\n\nevent: e\ndata:2\nid: 7\n\ndata:\n\ndata: end\n\ndata: late\n\n",
                ["=ä1", "e=2", "=end"].as_slice(),
            ),
            (
                "data: 1\r\n\r\nevent: e\r\ndata: 2\r\ndata: 3\r\n\r\n:\r\n\r\ndata: cut",
                &["=1", "e=2\n3"],
            ),
            ("nonsense\n\ndata: 2\n\n", &["malformed"]),
        ] {
            let bytes = text.as_bytes();

            for at in 0..=bytes.len() {
                let (begin, rest) = bytes.split_at(at);
                let chunks = [begin, rest].into_iter().filter(|chunk| !chunk.is_empty());
                assert_eq!(read(chunks.collect()).await, expected, "{at}");
            }
            assert_eq!(read(bytes.chunks(1).collect()).await, expected);
        }
        assert_eq!(read(vec![b"data: \xff\n\n"]).await, ["malformed"]);
    }
}
