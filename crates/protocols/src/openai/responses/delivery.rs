use std::pin::Pin;
use std::task::{Context, Poll, ready};

use actix_web::HttpResponse;
use actix_web::body::{BodySize, BoxBody, MessageBody};
use actix_web::rt;
use bytes::Bytes;

use threadkeep_domain::ResponseId;
use threadkeep_http::ConnectionState;
use threadkeep_responses::ResponseService;

/// Marks an answer as delivered once the whole answer has been written to the client's connection.
pub(super) struct Delivery {
    pub(super) responses: ResponseService,
    pub(super) id: ResponseId,
    pub(super) connection: Option<ConnectionState>,
}

struct Delivered {
    body: BoxBody,
    /// True if the body has ended and must not be polled again.
    has_ended: bool,
    delivery: Option<Delivery>,
}

impl Delivery {
    fn note(self) {
        let Self {
            responses,
            id,
            connection,
        } = self;
        // bytes that are written after the client has disconnected never arrive
        if connection.is_none_or(|connection| !connection.is_gone()) {
            rt::spawn(async move { responses.note_delivered(&id).await });
        }
    }

    pub(super) fn of(self, answer: HttpResponse) -> HttpResponse {
        answer.map_body(|_, body| {
            BoxBody::new(Delivered {
                body,
                has_ended: false,
                delivery: Some(self),
            })
        })
    }
}

impl MessageBody for Delivered {
    type Error = Box<dyn std::error::Error>;

    fn size(&self) -> BodySize {
        self.body.size()
    }

    fn poll_next(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, Self::Error>>> {
        if !self.has_ended {
            let next = ready!(Pin::new(&mut self.body).poll_next(context));
            if next.is_some() {
                return Poll::Ready(next);
            }
            // returns `Pending` once so that the connection writes its buffer; if that write fails, the connection
            // drops this body, and the answer is not marked as delivered
            self.has_ended = true;
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        if let Some(delivery) = self.delivery.take() {
            delivery.note();
        }
        Poll::Ready(None)
    }
}
