//! Streams answers of any length page by page, as fast as the client reads them.

use std::future::{Future, ready};

use actix_web::HttpResponse;
use bytes::Bytes;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use tokio::task::yield_now;

use super::super::AgentuityError;
use threadkeep_domain::EntryKey;
use threadkeep_service::ServiceError;

pub(super) struct Page {
    pub(super) items: Vec<String>,
    /// Last key of the page; `None` on the last page.
    pub(super) next: Option<EntryKey>,
}

enum Step {
    Send(Page),
    ReadAfter(EntryKey),
    End,
}

/// Streams a JSON array or object between the given brackets. If the first page fails, returns its error.
///
/// If a later page fails, the connection is cut, so that clients can distinguish a partial answer from a complete one.
pub(super) async fn respond<R, F>(
    [open, close]: [&'static str; 2],
    mut read: R,
) -> Result<HttpResponse, AgentuityError>
where
    R: FnMut(Option<EntryKey>) -> F + 'static,
    F: Future<Output = Result<Page, ServiceError>>,
{
    let first = Step::Send(read(None).await?);
    let pages = stream::try_unfold((first, read), |(step, mut read)| async move {
        let page = match step {
            Step::Send(page) => page,
            Step::ReadAfter(key) => {
                // an in-memory store never waits, so a search without matches would otherwise block the worker
                yield_now().await;
                read(Some(key)).await?
            }
            Step::End => return Ok(None),
        };
        let step = page.next.map_or(Step::End, Step::ReadAfter);
        Ok(Some((page.items, (step, read))))
    });
    let mut separator = "";
    let pages = pages
        .inspect_err(|error: &ServiceError| tracing::warn!(%error, "answer ended early"))
        .try_filter(|items| ready(!items.is_empty()))
        .map_ok(move |items| {
            let text = [separator, &items.join(",")].concat();
            separator = ",";
            Bytes::from(text)
        });
    let bracket = |text: &'static str| stream::once(ready(Ok(Bytes::from_static(text.as_bytes()))));
    let body = bracket(open).chain(pages).chain(bracket(close));
    Ok(HttpResponse::Ok()
        .content_type("application/json")
        .streaming(body))
}
