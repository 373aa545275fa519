use std::error::Error;

use actix_web::http::header::{CONTENT_TYPE, HeaderName};
use actix_web::{HttpResponse, HttpResponseBuilder};
use bytes::Bytes;
use futures_util::stream;

/// Header that keeps nginx from buffering the response (see nginx's `proxy_buffering`).
const ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// Comment line in a stream of server-sent events. Omits the blank line that ends an event.
///
/// A blank line would cause problems, because many clients, such as httpx-sse and OpenAI's Python client up to 3.57,
/// treat a blank line after an `id:` line as an event without data.
pub const COMMENT: &str = ":\n";

pub fn streamed(media_type: &'static str) -> HttpResponseBuilder {
    let mut builder = HttpResponse::Ok();
    builder
        .insert_header((CONTENT_TYPE, media_type))
        .insert_header((ACCEL_BUFFERING, "no"));
    builder
}

/// Streams the chunks that `next` returns, until it returns `None`. An error closes the connection in the middle of the
/// response, because a regular end would mark the response as complete.
pub fn cut_at_error<F, N, E>(mut builder: HttpResponseBuilder, feed: F, next: N) -> HttpResponse
where
    F: 'static,
    N: AsyncFn(&mut F) -> Result<Option<Bytes>, E> + 'static,
    E: Error + 'static,
{
    let chunks = stream::unfold(Some((feed, next)), async |feed| {
        let (mut feed, next) = feed?;
        match next(&mut feed).await {
            Ok(Some(chunk)) => Some((Ok(chunk), Some((feed, next)))),
            Ok(None) => None,
            Err(error) => {
                tracing::debug!(error = &error as &dyn Error, "answer ended early");
                Some((Err(error), None))
            }
        }
    });
    builder.streaming(chunks)
}
