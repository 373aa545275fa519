use std::future::poll_fn;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use actix_http::Protocol;
use actix_http::error::DispatchError;
use actix_server::GracefulShutdownSignal;
use actix_service::Service;
use tokio::time::timeout_at;

use super::idleness::Idleness;
use super::outbox::{Outbox, Outlet};
use super::stream::PacedStream;
use crate::telemetry::OpenConnection;
use threadkeep_http::ConnectionState;

/// A client's connection, which outlives the actix dispatchers that serve it.
pub(super) struct Connection {
    pub(super) outlet: Rc<Outlet>,
    pub(super) peer: SocketAddr,
    pub(super) outbox: Outbox,
    pub(super) keep_alive: Duration,
    pub(super) ending: GracefulShutdownSignal,
    pub(super) _open: OpenConnection,
}

impl Connection {
    /// Serves the connection until it ends.
    ///
    /// An actix dispatcher holds two buffers of 8 KiB. [`PacedStream`] therefore ends the dispatcher of an idle
    /// connection, which frees the buffers. The next request gets a new dispatcher.
    pub(super) async fn serve<S>(self, service: Rc<S>) -> Result<(), DispatchError>
    where
        S: Service<
                (PacedStream, Protocol, Option<SocketAddr>),
                Response = (),
                Error = DispatchError,
            >,
    {
        loop {
            poll_fn(|cx| service.poll_ready(cx)).await?;
            let idleness = Idleness::new(ConnectionState::default(), self.keep_alive);
            let outlet = Rc::clone(&self.outlet);
            let stream = PacedStream::new(outlet, idleness, self.outbox.clone());
            // boxed, so that the memory of the dispatcher is freed while the connection is parked
            Box::pin(service.call((stream, Protocol::Http1, Some(self.peer)))).await?;
            let Some(end) = self.outlet.unpark() else {
                return Ok(());
            };
            let has_request = tokio::select! {
                biased;
                () = self.ending.notified() => false,
                received = timeout_at(end, poll_fn(|cx| self.outlet.poll_bytes(cx))) => received.unwrap_or(false),
            };
            if !has_request {
                return Ok(());
            }
        }
    }
}
