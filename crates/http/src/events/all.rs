use actix_web::{HttpRequest, web};

use super::feed;
use super::feed::{Frame, Source};
use super::query::{Filter, LastEvent};
use crate::Api;
use crate::admin::webhook_body::EventTypeName;
use crate::answer::{ApiResult, EVENT_STREAM, accepts};
use crate::problems::BackEndProblems;
use crate::request::{AnyAcceptBackEnd, BackEnd, Query, cursor};
use threadkeep_events::{GlobalItem, GlobalStream, Watermark};
use threadkeep_service::ServiceError;
use threadkeep_store::StoreError;

const ALL: &[u8] = b"all";

struct GlobalFeed {
    api: web::Data<Api>,
    stream: GlobalStream,
}

/// Stream events of all threads
///
/// Sends server-sent events in the same format as the events of one thread. The events of each thread arrive in order.
/// A client that reconnects with its last cursor receives all later events that the log still holds, and may receive
/// some events twice.
#[utoipa::path(
    get,
    path = "/v1/events",
    params(
        ("type" = Option<Vec<EventTypeName>>, Query, description = "Send only events of these types."),
        ("Last-Event-ID" = Option<String>, Header, description = "The cursor of the last event that the client received."),
        ("last_event_id" = Option<String>, Query, description = "The cursor, for clients that cannot set headers. The header `Last-Event-ID` takes precedence."),
    ),
    responses(
        (status = 200, description = "An endless stream of server-sent events. `event` is the event type, `data` is an `Event`, and `id` is the cursor.", body = String, content_type = "text/event-stream"),
        BackEndProblems,
    ),
)]
pub(crate) async fn get_events(
    request: HttpRequest,
    AnyAcceptBackEnd(BackEnd { api, .. }): AnyAcceptBackEnd,
    Query(filter): Query<Filter>,
    last: LastEvent,
) -> ApiResult {
    accepts(&request, EVENT_STREAM)?;
    let after = cursor_of(&api, &last, &filter)?;
    let stream = api.events.global_stream(filter.types(), after).await;
    let stream = stream.map_err(ServiceError::Store)?;
    let events = api.events.clone();
    Ok(feed::respond(GlobalFeed { api, stream }, &events, None))
}

pub(crate) async fn head_events(
    request: HttpRequest,
    AnyAcceptBackEnd(BackEnd { api, .. }): AnyAcceptBackEnd,
    Query(filter): Query<Filter>,
    last: LastEvent,
) -> ApiResult {
    accepts(&request, EVENT_STREAM)?;
    cursor_of(&api, &last, &filter)?;
    Ok(feed::head())
}

fn cursor_of(api: &Api, last: &LastEvent, filter: &Filter) -> ApiResult<Option<Watermark>> {
    cursor::after(api.identity.ring(), ALL, last.or(&filter.resume))
}

impl GlobalFeed {
    fn seal(&self, cursor: &Watermark) -> String {
        cursor::seal(self.api.identity.ring(), ALL, cursor)
    }
}

impl Source for GlobalFeed {
    type Item = GlobalItem;

    fn start(&self) -> String {
        self.seal(&self.stream.start())
    }

    fn cursor(&self) -> Option<String> {
        self.stream.cursor().map(|cursor| self.seal(&cursor))
    }

    async fn next(&mut self) -> Result<Option<GlobalItem>, StoreError> {
        self.stream.next().await
    }

    async fn frame(&self, item: GlobalItem) -> Result<Frame, StoreError> {
        Ok(match item {
            GlobalItem::Event { event, cursor } => Frame {
                event: event.event_type().as_str(),
                id: self.seal(&cursor),
                data: self.api.events.render(&event).await?,
            },
            GlobalItem::Reset { cursor } => Frame {
                event: "reset",
                id: self.seal(&cursor),
                data: "{}".into(),
            },
        })
    }
}
