use std::convert::Infallible;

use actix_http::ws::handshake;
use actix_web::body::BodyStream;
use actix_web::web::{Data, Payload};
use actix_web::{HttpRequest, HttpResponse, rt};
use futures_util::StreamExt as _;

use super::connection::Connection;
use super::counters::Connected;
use super::outbox::outbox;
use crate::agentuity::{Agentuity, AgentuityError};

/// `GET /thread/ws`
///
/// Any origin may open a socket. Browsers do not restrict sockets to the same origin, and the server needs no such
/// protection: a browser cannot add the API key by itself, because the key is in the first message.
///
/// The server accepts no extensions. With `permessage-deflate`, which clients offer, a small message could expand into
/// a huge one.
pub(super) async fn open_socket(
    request: HttpRequest,
    payload: Payload,
    protocol: Data<Agentuity>,
) -> Result<HttpResponse, AgentuityError> {
    let mut response = handshake(request.head())?;
    let (outbox, frames) = outbox();
    rt::spawn(Connection::new(&protocol, payload, outbox).run());
    // the body owns the guard that counts the connection, and is dropped when the connection ends
    let connected = Connected::count(&protocol.counters);
    let body = BodyStream::new(frames.map(move |frame| {
        let _ = &connected;
        Ok::<_, Infallible>(frame)
    }));
    Ok(response.body(body).map_into_boxed_body().into())
}
