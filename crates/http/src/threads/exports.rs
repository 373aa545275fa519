use std::error::Error;
use std::future::poll_fn;
use std::pin::Pin;
use std::time::Duration;

use actix_web::body::MessageBody as _;
use actix_web::http::header::CONTENT_TYPE;
use actix_web::web::Bytes;
use actix_web::{HttpRequest, HttpResponse, HttpResponseBuilder, web};
use futures_util::stream;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::document;
use super::image_query::ExportQuery;
use crate::Api;
use crate::answer::{AnswerMemory, ApiResult, HeldResponse, NDJSON, accepts};
use crate::problems::BackEndProblems;
use crate::request::{AnyAcceptBackEnd, BackEnd, Query};
use threadkeep_service::{Export, Exported};
use threadkeep_web::ApiError;

/// Time limit for a response. When a response reaches this limit or `RESPONSE_BYTES_MAX`, it ends with a cursor,
/// because proxies may close connections that stay open for hours.
const RESPONSE_TIME_MAX: Duration = Duration::from_secs(300);
const RESPONSE_BYTES_MAX: u64 = 1 << 30;

/// Export all threads
///
/// Streams the threads of an owner, newest first, or all threads in the order of their ids. Each line is a thread
/// document. The last line is `{"complete":true}`, or `{"cursor":text}` if more threads follow. Send that cursor in the
/// next request.
///
/// A thread that the store cannot read is reported as a line `{"error":"unreadable","thread_id":text,"place":text}`.
/// The last line then contains the number of such lines in `failed`.
///
/// A response without a last line was cut off. To resume the export, send a cursor from the last complete line. If the
/// line has a `place`, the cursor is the `place`. Otherwise, the cursor is the id of the thread or, with `owner`, the
/// thread's `created_at` in milliseconds, `-` and the id.
///
/// The server does not read ahead of the client. A thread that changes during the export appears as it is when the
/// server reads it.
#[utoipa::path(
    get,
    path = "/v1/export",
    params(
        ("owner" = Option<String>, Query, min_length = 1, max_length = 256, description = "Export only the threads of this owner."),
        ("cursor" = Option<String>, Query, description = "Export only threads after this position."),
    ),
    responses(
        (status = 200, description = "One document per line, and a last line that says whether the export is complete.", body = String, content_type = "application/x-ndjson"),
        BackEndProblems,
    ),
)]
pub(crate) async fn export_threads(
    request: HttpRequest,
    AnyAcceptBackEnd(BackEnd { api, .. }): AnyAcceptBackEnd,
    Query(query): Query<ExportQuery>,
) -> ApiResult {
    accepts(&request, NDJSON)?;
    let mut export = export(&api, query)?;
    // reads the first thread before the response starts, so that the request fails if the store is unavailable
    let first = export.next().await?;
    let lines = Lines {
        api,
        export,
        next: Some(first),
        memory: request.conn_data::<AnswerMemory>().cloned(),
        sending: None,
        until: Instant::now() + RESPONSE_TIME_MAX,
        bytes: 0,
        failed: 0,
        is_done: false,
    };
    let chunks = stream::unfold(lines, |mut lines| async move {
        let chunk = lines.chunk().await?;
        Some((chunk, lines))
    });
    Ok(headers().streaming(chunks))
}

pub(crate) async fn head_export(
    request: HttpRequest,
    AnyAcceptBackEnd(BackEnd { api, .. }): AnyAcceptBackEnd,
    Query(query): Query<ExportQuery>,
) -> ApiResult {
    accepts(&request, NDJSON)?;
    export(&api, query)?;
    Ok(headers().streaming(stream::empty::<Result<Bytes, Cut>>()))
}

fn export(api: &Api, query: ExportQuery) -> ApiResult<Export> {
    let ExportQuery { owner, cursor } = query;
    let export = api.owners.export(api.images.clone(), owner, cursor);
    export.map_err(|_| ApiError::InvalidCursor)
}

fn headers() -> HttpResponseBuilder {
    let mut builder = HttpResponse::Ok();
    builder.insert_header((CONTENT_TYPE, NDJSON));
    builder
}

struct Lines {
    api: web::Data<Api>,
    export: Export,
    /// The next item of the export, if already read. The inner `None` means the end of the export.
    next: Option<Option<Exported>>,
    memory: Option<AnswerMemory>,
    /// A long line that is being sent, and the number of its remaining bytes.
    sending: Option<(HeldResponse, u64)>,
    until: Instant,
    bytes: u64,
    failed: u64,
    is_done: bool,
}

#[derive(Debug, thiserror::Error)]
#[error("the export was cut off")]
struct Cut(#[source] Option<Box<dyn Error>>);

impl Lines {
    async fn chunk(&mut self) -> Option<Result<Bytes, Cut>> {
        if let Some((held, remaining)) = &mut self.sending {
            let chunk = poll_fn(|cx| Pin::new(&mut *held).poll_next(cx)).await;
            let Some(Ok(chunk)) = chunk else {
                // other responses took the memory because this client was slow
                self.sending = None;
                self.is_done = true;
                return Some(Err(Cut(None)));
            };
            *remaining -= chunk.len() as u64;
            if *remaining == 0 {
                self.sending = None;
            }
            return Some(Ok(chunk));
        }
        if self.is_done {
            return None;
        }
        match self.line().await {
            Ok(line) => Some(Ok(line)),
            Err(cut) => {
                self.is_done = true;
                tracing::warn!(error = cut.0.as_deref(), "export ended early");
                Some(Err(cut))
            }
        }
    }

    fn last_line(&self, mut end: Value) -> Bytes {
        if self.failed > 0 {
            end["failed"] = self.failed.into();
        }
        line_of(&end)
    }

    async fn line(&mut self) -> Result<Bytes, Cut> {
        let is_over = Instant::now() >= self.until || self.bytes >= RESPONSE_BYTES_MAX;
        if (is_over || self.api.events.draining().is_cancelled())
            && self.next.is_none()
            && let Some(cursor) = self.export.cursor()
        {
            self.is_done = true;
            return Ok(self.last_line(json!({"cursor": cursor.to_string()})));
        }
        let next = match self.next.take() {
            Some(next) => next,
            None => self.export.next().await.map_err(cut)?,
        };
        let Some(Exported { id, image }) = next else {
            self.is_done = true;
            return Ok(self.last_line(json!({"complete": true})));
        };
        let Some(image) = image else {
            self.failed += 1;
            tracing::error!(thread = ?id, "thread unreadable, left out of the export");
            let cursor = self.export.cursor().map(|cursor| cursor.to_string());
            let line = json!({"error": "unreadable", "thread_id": id.as_str(), "place": cursor});
            return Ok(line_of(&line));
        };
        let mut line = document::write(&id, &image, self.api.service.policy());
        drop(image);
        line.push(b'\n');
        self.bytes += line.len() as u64;
        let line = Bytes::from(line);
        let is_long = AnswerMemory::is_counted(line.len() as u64);
        let Some(memory) = self.memory.as_ref().filter(|_| is_long) else {
            return Ok(line);
        };
        let bytes = line.len() as u64;
        let mut held = memory.hold(line).await.map_err(cut)?;
        let chunk = poll_fn(|cx| Pin::new(&mut held).poll_next(cx)).await;
        let Some(Ok(chunk)) = chunk else {
            return Err(Cut(None));
        };
        self.sending = Some((held, bytes - chunk.len() as u64));
        Ok(chunk)
    }
}

fn line_of(value: &Value) -> Bytes {
    format!("{value}\n").into()
}

fn cut(error: impl Error + 'static) -> Cut {
    Cut(Some(Box::new(error)))
}
