//! Gives each logged-in user the same thread in every browser. Run `cargo run --example logins`, then `curl -H
//! 'authorization: Bearer token-of-ada' http://127.0.0.1:3000/visits`.

use std::{collections::HashMap, error::Error, sync::Arc};

use actix_web::http::header::AUTHORIZATION;
use actix_web::{App, HttpRequest, HttpServer, get};
use threadkeep::{ApiError, Thread, Threads};
use threadkeep_identity::{ProviderError, ThreadId, ThreadIdProvider, TrustedProxies};

/// Maps each token to the thread of its user.
#[derive(Debug)]
struct Logins(HashMap<&'static str, ThreadId>);

impl ThreadIdProvider for Logins {
    /// Returns false because browsers do not add the token automatically, so pages on other sites cannot send it.
    fn is_ambient(&self) -> bool {
        false
    }

    fn thread_id(
        &self,
        request: &HttpRequest,
        _proxies: &TrustedProxies,
    ) -> Result<ThreadId, ProviderError> {
        let header = request.headers().get(AUTHORIZATION);
        let header = header.ok_or(ProviderError::Missing)?.to_str();
        let token = header.ok().and_then(|text| text.strip_prefix("Bearer "));
        let id = token.and_then(|token| self.0.get(token));
        id.copied().ok_or(ProviderError::Untrusted(None))
    }
}

#[get("/visits")]
async fn visits(thread: Thread) -> Result<String, ApiError> {
    thread.state().increment("visits", 1)?;
    let visits: Option<i64> = thread.state().get("visits").await?;
    Ok(visits.unwrap_or_default().to_string())
}

#[actix_web::main]
async fn main() -> Result<(), Box<dyn Error>> {
    // an app would read these from its database
    let users = [
        ("token-of-ada", ThreadId::random()),
        ("token-of-bob", ThreadId::random()),
    ];
    let logins = Arc::new(Logins(users.into()));
    let threads = Threads::builder().provider(logins).build().await?;
    let server = HttpServer::new(move || App::new().wrap(threads.clone()).service(visits));
    Ok(server.bind("127.0.0.1:3000")?.run().await?)
}
