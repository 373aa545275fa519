use std::net::{SocketAddr, TcpListener};
use std::rc::Rc;
use std::time::Duration;
use std::{fmt, io};

use actix_http::error::DispatchError;
use actix_http::{HttpService, KeepAlive, Request};
use actix_server::ServerBuilder;
use actix_service::{
    IntoServiceFactory, Service, ServiceFactory, ServiceFactoryExt, fn_factory, into_service,
    map_config,
};
use actix_web::Error;
use actix_web::body::MessageBody;
use actix_web::dev::{AppConfig, Response, Server};
use actix_web::rt::net::TcpStream;
use socket2::{Domain, Protocol, Socket, Type};

use super::idleness::HEAD_TIMEOUT;
use super::outbox::{Outbox, Outlet};
use super::parking::Connection;
use super::sockets::set_send_timeout;
use super::stream::PacedStream;
use crate::telemetry::Connections;
use threadkeep_http::{AnswerMemory, BodyAlarm, BodyMemory};

const BACKLOG: i32 = 1_024;
/// How long the server continues to read from a connection that it closes in the middle of a request. If the server
/// stopped reading immediately, the client could lose the response.
const LINGERING: Duration = Duration::from_secs(5);

#[derive(Debug, Clone)]
pub(crate) struct ConnectionSettings {
    pub(crate) workers: Option<usize>,
    /// Maximum connections per worker.
    pub(crate) max_connections: usize,
    /// Memory limit per worker for request bodies and responses, and size limit for a single body, both in bytes.
    pub(crate) body_memory: (u64, u64),
    /// Maximum idle time between requests.
    pub(crate) keep_alive: Duration,
    /// Grace period for running requests.
    pub(crate) shutdown: Duration,
}

#[derive(Debug)]
pub(crate) struct Listener {
    listener: TcpListener,
    address: SocketAddr,
}

impl Listener {
    pub(crate) fn bind(address: SocketAddr) -> io::Result<Self> {
        let domain = Domain::for_address(address);
        let socket = Socket::new(domain, Type::STREAM, Some(Protocol::TCP))?;
        // allows binding to a port whose previous server has just stopped
        socket.set_reuse_address(true)?;
        socket.bind(&address.into())?;
        socket.listen(BACKLOG)?;
        let listener = TcpListener::from(socket);
        let address = listener.local_addr()?;
        Ok(Self { listener, address })
    }

    /// Returns the actual address, with the port that the system chose.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn serve<F, I, S, B>(
        self,
        settings: &ConnectionSettings,
        connections: Connections,
        app: F,
    ) -> io::Result<Server>
    where
        F: Fn() -> I + Send + Clone + 'static,
        I: IntoServiceFactory<S, Request>,
        S: ServiceFactory<Request, Config = AppConfig> + 'static,
        S::Error: Into<Error> + 'static,
        S::InitError: fmt::Debug,
        S::Response: Into<Response<B>> + 'static,
        S::Service: 'static,
        <S::Service as Service<Request>>::Future: 'static,
        B: MessageBody + 'static,
    {
        let ConnectionSettings {
            workers,
            max_connections,
            body_memory: (memory_bytes, body_bytes),
            keep_alive,
            shutdown,
        } = settings.clone();
        let mut builder: ServerBuilder = Server::build()
            .disable_signals()
            .max_concurrent_connections(max_connections)
            .shutdown_timeout(shutdown.as_secs());
        if let Some(workers) = workers {
            builder = builder.workers(workers);
        }
        let (address, ending) = (self.address, builder.graceful_shutdown_signal());
        let serve = move || {
            let (ending, connections) = (ending.clone(), connections.clone());
            let app = app().into_factory();
            let app = app.map_err(|error| error.into().error_response());
            let memory = BodyMemory::new(memory_bytes, body_bytes);
            let answers = AnswerMemory::new(memory_bytes);
            let signal = ending.clone();
            let http = HttpService::build()
                .graceful_shutdown_signal(move || {
                    let signal = signal.clone();
                    async move { signal.notified().await }
                })
                .keep_alive(KeepAlive::Timeout(keep_alive + HEAD_TIMEOUT))
                .client_request_timeout(HEAD_TIMEOUT)
                .client_disconnect_timeout(LINGERING)
                .local_addr(address)
                .on_connect_ext(move |stream: &PacedStream, data| {
                    data.insert(stream.connection_state());
                    data.insert(BodyAlarm::default());
                    data.insert(memory.clone());
                    data.insert(answers.clone());
                })
                .finish(map_config(app, |()| AppConfig::default()));
            let (http, outbox) = (Rc::new(http), Outbox::start());
            fn_factory(move || {
                let http = Rc::clone(&http);
                let (outbox, ending) = (outbox.clone(), ending.clone());
                let connections = connections.clone();
                async move {
                    let service = Rc::new(http.new_service(()).await?);
                    Ok::<_, ()>(into_service(move |stream: TcpStream| {
                        // without a peer address, the client has already disconnected, so the connection is neither
                        // counted nor served
                        let connection = stream.peer_addr().map(|peer| Connection {
                            outlet: prepare(stream),
                            peer,
                            outbox: outbox.clone(),
                            keep_alive,
                            ending: ending.clone(),
                            _open: connections.open(),
                        });
                        let service = Rc::clone(&service);
                        async move { connection.map_err(DispatchError::Io)?.serve(service).await }
                    }))
                }
            })
        };
        let builder = builder.listen("threadkeep", self.listener, serve)?;
        Ok(builder.run())
    }
}

fn prepare(stream: TcpStream) -> Rc<Outlet> {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "cannot set TCP_NODELAY on a connection");
    }
    set_send_timeout(&stream);
    Outlet::new(stream)
}
