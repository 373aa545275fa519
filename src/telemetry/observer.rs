use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use actix_web::body::MessageBody;
use actix_web::dev::{Service, ServiceRequest, ServiceResponse, Transform};
use actix_web::http::header::{HeaderMap, HeaderName};
use actix_web::http::{Method, StatusCode};
use actix_web::middleware::{Next, from_fn};
use actix_web::{Error, HttpMessage, HttpRequest, ResponseError};
use prometheus_client::metrics::counter::Counter;
use tracing::field::{debug, display};

use super::chain::Chain;
use super::http::{HttpMetrics, RouteSeries};
use super::labels::{Identity, method_label};
use threadkeep_domain::{TraceParent, short_hash};
use threadkeep_http::{Audited, session_of};
use threadkeep_identity::{Caller, Source};
use threadkeep_protocols::agentuity::AgentuityError;
use threadkeep_protocols::modelrelay::RelayError;
use threadkeep_protocols::openai::OpenAiError;
use threadkeep_protocols::use_agent::UseAgentError;
use threadkeep_stats::RouteRecorder;
use threadkeep_store::CallRejected;
use threadkeep_trace as trace;
use threadkeep_trace::{AttributeValue, Context, Ended, SpanKind, Times, Tracer};
use threadkeep_web::ApiError;

/// Label for an error in another protocol if this API has no code for the error.
const NO_CODE: &str = "other";

const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

const UNMATCHED: &str = "unmatched";

/// Keeps the metric handles of one worker, so that requests do not have to look up labels. Workers share only the locks
/// of the statistics.
#[derive(Debug)]
pub struct Observer {
    metrics: HttpMetrics,
    recorder: Arc<RouteRecorder>,
    logs: RequestLogs,
    tracer: Option<Tracer>,
    routes: RefCell<BTreeMap<String, RouteSeries>>,
    callers: RefCell<Vec<CallerSeries>>,
}

#[derive(Debug)]
struct CallerSeries {
    source: Source,
    key_name: Option<Arc<str>>,
    counter: Counter,
}

/// Selects which requests are logged in addition to failed requests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RequestLogs {
    /// Logs each request at level `info`.
    pub all: bool,
    /// Responses that take at least this long are logged as slow. `None` disables these log lines.
    pub slow: Option<Duration>,
}

impl Observer {
    #[must_use]
    pub fn new(
        metrics: HttpMetrics,
        recorder: Arc<RouteRecorder>,
        logs: RequestLogs,
        tracer: Option<Tracer>,
    ) -> Self {
        Self {
            tracer,
            metrics,
            recorder,
            logs,
            routes: RefCell::default(),
            callers: RefCell::default(),
        }
    }

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
                let context = this.context(&request, start);
                let answering = next.call(request);
                let response = match &context {
                    None => answering.await?,
                    Some(context) => trace::within(Arc::clone(context), answering).await?,
                };
                this.observe(&response, start, Instant::now(), context.as_deref());
                Ok(response)
            }
        })
    }

    fn context(&self, request: &ServiceRequest, start: Instant) -> Option<Arc<Context>> {
        let parent = trace_parent(request.headers());
        if let Some(tracer) = &self.tracer
            && let Some(recording) = tracer.begin(parent, start)
        {
            return Some(Context::recorded(recording, start));
        }
        let is_needed = parent.is_some() || self.logs.slow.is_some();
        is_needed.then(|| Context::new(parent, start))
    }

    fn observe<B>(
        &self,
        response: &ServiceResponse<B>,
        start: Instant,
        ended: Instant,
        context: Option<&Context>,
    ) {
        let duration = ended - start;
        let request = response.request();
        let status = response.status();
        let error = response.response().error();
        let problem = error
            .and_then(|error| error.as_error::<ApiError>())
            .map(ApiError::problem);
        let pattern = request.match_pattern();
        let pattern = pattern.as_deref().unwrap_or(UNMATCHED);
        let route = self.count(pattern, request.method(), status, (ended, duration));
        if status.as_u16() >= 400 {
            let code = problem.as_ref().map_or(NO_CODE, |problem| problem.code);
            self.metrics.errors.get_or_create(&[("code", code)]).inc();
        }
        let problem_code = problem.as_ref().map(|problem| problem.code);
        if let Some((limit, bytes)) = problem.and_then(|problem| problem.refused_bytes) {
            let refused = &self.metrics.refused_bytes;
            refused.get_or_create(&[("limit", limit)]).inc_by(bytes);
        }
        if let Some(caller) = request.extensions().get::<Caller>() {
            self.count_caller(caller);
        }
        let parent = context.and_then(Context::parent);
        if let Some(Audited(key)) = request.extensions().get::<Audited>() {
            audit(request, &route, key, status, problem_code, parent);
        }
        let line = Line {
            request,
            route: &route,
            status,
            duration,
            parent,
            is_shutdown_error: problem_code == Some("shutting_down"),
        };
        line.log(error.and_then(cause), self.logs.all);
        if let Some(recording) = context.and_then(Context::recording) {
            recording.end(ended, line.span(problem_code));
        }
        if let (Some(context), Some(slow)) = (context, self.logs.slow)
            && duration >= slow
        {
            line.log_slow(&context.times(ended));
        }
    }

    fn count(
        &self,
        pattern: &str,
        method: &Method,
        status: StatusCode,
        (ended, duration): (Instant, Duration),
    ) -> Arc<str> {
        let mut routes = self.routes.borrow_mut();
        // avoid the entry API, which would allocate a string for each request
        let series = match routes.get_mut(pattern) {
            Some(series) => series,
            None => {
                let series = RouteSeries::new(&self.metrics, pattern);
                routes.entry(pattern.into()).or_insert(series)
            }
        };
        series.duration.observe(duration.as_secs_f64());
        let answers = series.answers(&self.metrics, &self.recorder, method, status);
        answers.count.inc();
        let (number, status) = (answers.number, status.as_u16());
        self.recorder.record(number, status, ended, duration);
        Arc::clone(&series.route)
    }

    fn count_caller(&self, caller: &Caller) {
        if let Some(rejected) = caller.rejected_cookie {
            self.metrics.rejected_cookie(rejected).inc();
        }
        if caller.foreign_without_cookie && self.metrics.foreign_without_cookie.inc() == 0 {
            tracing::warn!(
                "a page of another origin wrote without a cookie; if the page has written before, its browser withholds \
                 the cookie, and each write gets a new thread: see docs/browser.md"
            );
        }
        let mut callers = self.callers.borrow_mut();
        let existing = callers
            .iter()
            .find(|series| series.source == caller.source && series.key_name == caller.key_name);
        if let Some(existing) = existing {
            existing.counter.inc();
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

/// Logs a call to an audited route. Path parameters are hashed, because they may identify a person.
fn audit(
    request: &HttpRequest,
    route: &str,
    key: &str,
    status: StatusCode,
    code: Option<&'static str>,
    parent: Option<TraceParent>,
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
        traceparent = parent.map(display),
        "audit: API key used"
    );
}

fn cause(error: &Error) -> Option<&(dyn std::error::Error + 'static)> {
    fn downcast<E: ResponseError + std::error::Error + 'static>(
        error: &Error,
    ) -> Option<&(dyn std::error::Error + 'static)> {
        error.as_error::<E>().map(|error| error as _)
    }
    downcast::<ApiError>(error)
        .or_else(|| downcast::<AgentuityError>(error))
        .or_else(|| downcast::<RelayError>(error))
        .or_else(|| downcast::<OpenAiError>(error))
        .or_else(|| downcast::<UseAgentError>(error))
}

fn is_unsent_call(error: &(dyn std::error::Error + 'static)) -> bool {
    let mut errors = std::iter::successors(Some(error), |error| error.source());
    errors.any(<dyn std::error::Error>::is::<CallRejected>)
}

/// Parses the header `traceparent`. A repeated header is ignored, as the specification requires.
fn trace_parent(headers: &HeaderMap) -> Option<TraceParent> {
    let mut given = headers.get_all(TRACEPARENT);
    let parent = given.next()?.to_str().ok()?.parse().ok()?;
    given.next().is_none().then_some(parent)
}

/// The log line for a request. Omits the path, because it may contain state keys and a complete thread id.
struct Line<'a> {
    request: &'a HttpRequest,
    route: &'a str,
    status: StatusCode,
    duration: Duration,
    parent: Option<TraceParent>,
    /// True if the request failed only because the server is shutting down.
    is_shutdown_error: bool,
}

impl Line<'_> {
    fn log(&self, error: Option<&(dyn std::error::Error + 'static)>, logs_all: bool) {
        let extensions = self.request.extensions();
        let request_id = session_of(self.request).map(display);
        let caller = extensions.get::<Caller>();
        let thread_id = caller.map(|caller| debug(&caller.id));
        let status = self.status.as_u16();
        if caller.is_some_and(|caller| caller.rejected_cookie.is_some()) {
            tracing::info!(
                request.id = request_id,
                "cookie ignored: its signature is wrong"
            );
        }
        // the store's unavailability has already been logged
        let is_reported = self.is_shutdown_error || error.is_some_and(is_unsent_call);
        let error = error.map(|error| display(Chain(error)));
        macro_rules! line {
            ($level:ident, $message:literal) => {
                tracing::$level!(
                    request.id = request_id,
                    route = self.route,
                    method = method_label(self.request.method()),
                    status,
                    duration_ms = milliseconds(self.duration),
                    thread.id = thread_id,
                    traceparent = self.parent.map(display),
                    error,
                    $message
                )
            };
        }
        match (status >= 500 && !is_reported, logs_all) {
            (true, _) => line!(warn, "failed"),
            (false, true) => line!(info, "answered"),
            (false, false) => line!(debug, "answered"),
        }
    }

    /// Builds a span according to the [conventions for
    /// HTTP](https://opentelemetry.io/docs/specs/semconv/http/http-spans/#http-server), but omits the path, which may
    /// contain state keys and a thread id.
    fn span(&self, code: Option<&'static str>) -> Ended {
        let method = match method_label(self.request.method()) {
            "other" => "_OTHER",
            method => method,
        };
        let mut attributes = vec![
            ("http.request.method", method.into()),
            ("http.response.status_code", self.status.as_u16().into()),
            // the scheme of the server's own connections
            ("url.scheme", "http".into()),
        ];
        let is_known = self.route != UNMATCHED;
        if is_known {
            attributes.push(("http.route", self.route.to_owned().into()));
        }
        if let Some(session) = session_of(self.request) {
            attributes.push(("threadkeep.request.id", session.to_string().into()));
        }
        if let Some(caller) = self.request.extensions().get::<Caller>() {
            attributes.push(("threadkeep.thread.hash", format!("{:?}", caller.id).into()));
        }
        // a 4xx response is the client's error
        let has_failed = self.status.is_server_error();
        if has_failed {
            let status = || self.status.as_u16().to_string().into();
            let error_type = code.map_or_else(status, AttributeValue::from);
            attributes.push(("error.type", error_type));
        }
        Ended {
            name: match is_known {
                true => format!("{method} {}", self.route).into(),
                false => method.into(),
            },
            kind: SpanKind::Server,
            attributes,
            has_failed,
        }
    }

    fn log_slow(&self, times: &Times) {
        let extensions = self.request.extensions();
        let caller = extensions.get::<Caller>();
        tracing::warn!(
            request.id = session_of(self.request).map(display),
            route = self.route,
            method = method_label(self.request.method()),
            status = self.status.as_u16(),
            duration_ms = milliseconds(self.duration),
            body_ms = milliseconds(times.body),
            store_ms = milliseconds(times.store),
            waiting_ms = milliseconds(times.waiting),
            rest_ms = milliseconds(times.rest),
            thread.id = caller.map(|caller| debug(&caller.id)),
            traceparent = self.parent.map(display),
            "slow request"
        );
    }
}

fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

#[cfg(test)]
mod tests {
    use actix_web::test::{TestRequest, call_service, init_service};
    use actix_web::{App, HttpResponse, web};
    use prometheus_client::encoding::text::encode;
    use prometheus_client::registry::Registry;

    use super::*;
    use threadkeep_domain::ThreadId;
    use threadkeep_stats::Stats;

    #[actix_web::test]
    async fn requests_are_counted_by_pattern_and_callers_by_source() {
        let mut registry = Registry::default();
        let metrics = HttpMetrics::register(&mut registry);
        let observer = Observer::new(
            metrics,
            Stats::default().route_recorder(),
            RequestLogs::default(),
            None,
        );
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
            r#"requests_identified_total{source="cookie",key="main"} 2"#,
            r#"cookies_rejected_total{reason="malformed"} 0"#,
        ] {
            assert!(text.contains(line), "{line} in {text}");
        }
    }
}
