//! The middleware that counts, measures and logs requests.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use actix_web::body::MessageBody;
use actix_web::dev::{Service, ServiceRequest, ServiceResponse, Transform};
use actix_web::http::{Method, StatusCode};
use actix_web::middleware::{Next, from_fn};
use actix_web::{Error, HttpMessage, HttpRequest, ResponseError};
use prometheus_client::metrics::counter::Counter;
use tracing::field::{debug, display};

use super::chain::Chain;
use super::http::{HttpMetrics, RouteSeries};
use super::labels::{ErrorCode, Identity, Limit, method_label};
use crate::domain::short_hash;
use crate::http::{Audited, session_of};
use crate::identity::{Caller, Source};
use crate::protocols::agentuity::AgentuityError;
use crate::protocols::modelrelay::RelayError;
use crate::protocols::openai::OpenAiError;
use crate::protocols::use_agent::UseAgentError;
use crate::store::NotAsked;
use crate::web::ApiError;

/// The code of errors in the format of another protocol, without a code of this API.
const NO_CODE: &str = "other";

/// The route of requests that match none.
const UNMATCHED: &str = "unmatched";

/// One worker's handles of the metrics, so that a request looks up no label and takes no lock that workers share,
/// except those of the numbers.
#[derive(Debug)]
pub struct Observer {
    metrics: HttpMetrics,
    /// Whether each request is logged, and not only those that fail.
    logs_all: bool,
    routes: RefCell<BTreeMap<String, RouteSeries>>,
    callers: RefCell<Vec<CallerSeries>>,
}

/// The requests whose thread was found in one way.
#[derive(Debug)]
struct CallerSeries {
    source: Source,
    key_name: Option<Arc<str>>,
    counter: Counter,
}

impl Observer {
    /// An observer for a worker, which logs each request at the level `info` if `logs_all` is set.
    #[must_use]
    pub fn new(metrics: HttpMetrics, logs_all: bool) -> Self {
        Self {
            metrics,
            logs_all,
            routes: RefCell::default(),
            callers: RefCell::default(),
        }
    }

    /// The middleware that observes.
    pub fn into_middleware<S, B>(
        self,
    ) -> impl Transform<S, ServiceRequest, Response = ServiceResponse<B>, Error = Error, InitError = ()>
    where
        S: Service<ServiceRequest, Response = ServiceResponse<B>, Error = Error> + 'static,
        B: MessageBody + 'static,
    {
        let this = Rc::new(self);
        from_fn(move |request: ServiceRequest, next: Next<B>| {
            let this = Rc::clone(&this);
            async move {
                let start = Instant::now();
                let response = next.call(request).await?;
                this.observe(&response, start.elapsed());
                Ok(response)
            }
        })
    }

    fn observe<B>(&self, response: &ServiceResponse<B>, duration: Duration) {
        let request = response.request();
        let status = response.status();
        let error = response.response().error();
        let problem = error
            .and_then(|error| error.as_error::<ApiError>())
            .map(ApiError::problem);
        let pattern = request.match_pattern();
        let pattern = pattern.as_deref().unwrap_or(UNMATCHED);
        let route = self.count(pattern, request.method(), status, duration);
        if status.as_u16() >= 400 {
            let code = problem.as_ref().map_or(NO_CODE, |problem| problem.code);
            self.metrics.errors.get_or_create(&ErrorCode { code }).inc();
        }
        let problem_code = problem.as_ref().map(|problem| problem.code);
        if let Some((limit, bytes)) = problem.and_then(|problem| problem.refused_bytes) {
            let refused = self.metrics.refused_bytes.get_or_create(&Limit { limit });
            refused.inc_by(bytes);
        }
        if let Some(caller) = request.extensions().get::<Caller>() {
            self.count_caller(caller);
        }
        if let Some(Audited(key)) = request.extensions().get::<Audited>() {
            audit(request, &route, key, status, problem_code);
        }
        let cause = error.and_then(cause);
        log(request, &route, status, duration, cause, self.logs_all);
    }

    /// Counts a request, and returns the label of its route.
    fn count(
        &self,
        pattern: &str,
        method: &Method,
        status: StatusCode,
        duration: Duration,
    ) -> Arc<str> {
        let mut routes = self.routes.borrow_mut();
        // not the entry API, which needs a string of its own for each request
        let series = match routes.get_mut(pattern) {
            Some(series) => series,
            None => {
                let series = RouteSeries::new(&self.metrics, pattern);
                routes.entry(pattern.into()).or_insert(series)
            }
        };
        series.duration.observe(duration.as_secs_f64());
        series.requests(&self.metrics, method, status).inc();
        Arc::clone(&series.route)
    }

    fn count_caller(&self, caller: &Caller) {
        if caller.ignored_cookie {
            self.metrics.ignored_cookies.inc();
        }
        if caller.unverified_cookie {
            self.metrics.unverified_cookies.inc();
        }
        if caller.foreign_without_cookie && self.metrics.foreign_without_cookie.inc() == 0 {
            tracing::warn!(
                "a page of another origin wrote without a cookie; if this was not its first write, its browser withholds \
                 the cookie, and each of its writes gets a new thread: see docs/browser.md"
            );
        }
        let mut callers = self.callers.borrow_mut();
        let known = callers
            .iter()
            .find(|known| known.source == caller.source && known.key_name == caller.key_name);
        if let Some(known) = known {
            known.counter.inc();
            return;
        }
        let labels = Identity {
            source: caller.source.as_str(),
            key: caller.key_name.clone().unwrap_or_default(),
        };
        let counter = self.metrics.identities.get_or_create_owned(&labels);
        counter.inc();
        callers.push(CallerSeries {
            source: caller.source,
            key_name: caller.key_name.clone(),
            counter,
        });
    }
}

/// A line for a call that only operators make. The parts of its path are hashed, as they may name a person.
fn audit(
    request: &HttpRequest,
    route: &str,
    key: &str,
    status: StatusCode,
    code: Option<&'static str>,
) {
    let hashes: Vec<_> = request
        .match_info()
        .iter()
        .map(|(name, value)| format!("{name}=#{}", short_hash(value.as_bytes())))
        .collect();
    tracing::info!(
        request.id = session_of(request).map(display),
        api_key = key,
        route,
        method = method_label(request.method()),
        status = status.as_u16(),
        code,
        parts = hashes.join(" "),
        "audit"
    );
}

/// The cause of an error, from the protocols that answer requests.
fn cause(error: &Error) -> Option<&(dyn std::error::Error + 'static)> {
    fn known<E: ResponseError + std::error::Error + 'static>(
        error: &Error,
    ) -> Option<&(dyn std::error::Error + 'static)> {
        error.as_error::<E>().map(|error| error as _)
    }
    known::<ApiError>(error)
        .or_else(|| known::<AgentuityError>(error))
        .or_else(|| known::<RelayError>(error))
        .or_else(|| known::<OpenAiError>(error))
        .or_else(|| known::<UseAgentError>(error))
}

/// Whether the call was rejected before it was sent.
fn is_of_a_call_that_was_not_sent(error: &(dyn std::error::Error + 'static)) -> bool {
    let mut errors = std::iter::successors(Some(error), |error| error.source());
    errors.any(<dyn std::error::Error>::is::<NotAsked>)
}

/// A line for the request. The path is left out, since it may hold a whole id and keys.
fn log(
    request: &HttpRequest,
    route: &str,
    status: StatusCode,
    duration: Duration,
    error: Option<&(dyn std::error::Error + 'static)>,
    logs_all: bool,
) {
    let extensions = request.extensions();
    let request_id = session_of(request).map(display);
    let caller = extensions.get::<Caller>();
    let thread_id = caller.map(|caller| debug(&caller.id));
    let method = method_label(request.method());
    let status = status.as_u16();
    let duration_ms = duration.as_secs_f64() * 1000.0;
    if caller.is_some_and(|caller| caller.ignored_cookie) {
        tracing::info!(
            request.id = request_id,
            "cookie ignored: its signature is wrong"
        );
    }
    // an unavailable store has been logged once already
    let is_told = error.is_some_and(is_of_a_call_that_was_not_sent);
    let error = error.map(|error| display(Chain(error)));
    macro_rules! line {
        ($level:ident, $message:literal) => {
            tracing::$level!(
                request.id = request_id,
                route,
                method,
                status,
                duration_ms,
                thread.id = thread_id,
                error,
                $message
            )
        };
    }
    match (status >= 500 && !is_told, logs_all) {
        (true, _) => line!(warn, "failed"),
        (false, true) => line!(info, "answered"),
        (false, false) => line!(debug, "answered"),
    }
}

#[cfg(test)]
mod tests {
    use actix_web::test::{TestRequest, call_service, init_service};
    use actix_web::{App, HttpResponse, web};
    use prometheus_client::encoding::text::encode;
    use prometheus_client::registry::Registry;

    use super::*;
    use crate::domain::ThreadId;

    #[actix_web::test]
    async fn requests_are_counted_by_pattern_and_callers_by_source() {
        let mut registry = Registry::default();
        let observer = Observer::new(HttpMetrics::register(&mut registry), false);
        let handler = |request: HttpRequest| async move {
            let mut caller = Caller::of(ThreadId::random(), Source::Cookie);
            caller.key_name = Some("main".into());
            request.extensions_mut().insert(caller);
            HttpResponse::Ok().finish()
        };
        let refuse = || async { Err::<&str, _>(ApiError::InvalidThreadId) };
        let app = App::new()
            .wrap(observer.into_middleware())
            .route("/refused", web::get().to(refuse))
            .route("/threads/{id:[^/]*}", web::get().to(handler));
        let app = init_service(app).await;

        for path in ["/threads/a", "/threads/b", "/elsewhere", "/refused"] {
            call_service(&app, TestRequest::with_uri(path).to_request()).await;
        }

        let mut text = String::new();
        encode(&mut text, &registry).unwrap();
        for line in [
            r#"http_requests_total{route="/threads/{id}",method="GET",status="200"} 2"#,
            r#"http_requests_total{route="unmatched",method="GET",status="404"} 1"#,
            r#"http_request_duration_seconds_count{route="/threads/{id}"} 2"#,
            r#"http_errors_total{code="other"} 1"#,
            r#"http_errors_total{code="invalid_thread_id"} 1"#,
            r#"identities_total{source="cookie",key="main"} 2"#,
            "ignored_cookies_total 0",
        ] {
            assert!(text.contains(line), "{line} in {text}");
        }
    }
}
