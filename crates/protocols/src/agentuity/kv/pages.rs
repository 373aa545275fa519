//! Answers of any length, made page by page as fast as the client takes them.

use std::future::{Future, ready};

use actix_web::HttpResponse;
use bytes::Bytes;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use tokio::task::yield_now;

use super::super::AgentuityError;
use threadkeep_domain::EntryKey;
use threadkeep_service::ServiceError;

/// A part of an answer.
pub(super) struct Page {
    /// The items, as JSON.
    pub(super) items: Vec<String>,
    /// The last key of the page; none on the last page.
    pub(super) next: Option<EntryKey>,
}

enum Step {
    Send(Page),
    ReadAfter(EntryKey),
    End,
}

/// Answers with JSON between these brackets. When the first page cannot be read, that is the answer;
/// when a later one cannot, the connection is cut, so that no client takes a part for the whole.
///
/// # Errors
/// That of the first page.
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
                // a store that never waits would block the other tasks of this worker while nothing
                // is found
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
