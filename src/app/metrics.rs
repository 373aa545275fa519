use std::future::ready;
use std::net::SocketAddr;
use std::sync::Arc;
use std::{fmt, io};

use actix_web::dev::Server;
use actix_web::error::ErrorInternalServerError;
use actix_web::web::Bytes;
use actix_web::{App, Error, HttpRequest, HttpResponse, HttpServer, Resource};
use flate2::Compression;
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;

use threadkeep_http::{Encoded, gzip, read_only};

const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Maximum number of connections. Large enough for a few metrics collectors, even if some of them do not respond.
const CONNECTIONS_MAX: usize = 64;

pub(super) fn serve(
    address: SocketAddr,
    registry: Arc<Registry>,
) -> io::Result<(SocketAddr, Server)> {
    let app = move || App::new().service(resource(Arc::clone(&registry)));
    let server = HttpServer::new(app)
        .workers(1)
        .max_connections(CONNECTIONS_MAX)
        .disable_signals()
        .bind(address)?;
    let address = server.addrs().first().copied().unwrap_or(address);
    Ok((address, server.run()))
}

pub(super) fn resource(registry: Arc<Registry>) -> Resource {
    read_only("/metrics", move |request: HttpRequest| {
        ready(page(&request, &registry))
    })
}

fn page(request: &HttpRequest, registry: &Registry) -> Result<HttpResponse, Error> {
    let mut text = String::new();
    encode(&mut text, registry)
        .map_err(|fmt::Error| ErrorInternalServerError("the metrics cannot be encoded"))?;
    let mut response = HttpResponse::Ok();
    response.content_type(CONTENT_TYPE);
    let text = Bytes::from(text);
    let compressed = || gzip(&text, Compression::fast());
    Ok(Encoded::choose(request, text.clone(), compressed).answer(response))
}
