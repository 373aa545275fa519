use crate::request::ModelRequest;

/// Headers that the service may send to an upstream. Other headers may come from callers and must not be forwarded.
const ALLOWED: [&str; 9] = [
    "accept",
    "accept-encoding",
    "connection",
    "content-length",
    "content-type",
    "host",
    "traceparent",
    "tracestate",
    "user-agent",
];

pub(crate) fn faults(request: &ModelRequest) -> Vec<String> {
    let mut faults = Vec::new();
    for (name, _) in &request.headers {
        let is_allowed = ALLOWED.contains(&name.as_str()) || is_api_header(request, name);
        if !is_allowed {
            faults.push(format!("unexpected header {name}"));
        }
    }
    let agent = request.header("user-agent").unwrap_or_default();
    if !agent.starts_with("threadkeep/") {
        faults.push(format!("wrong user agent {agent:?}"));
    }
    for name in request.wire.headers() {
        if request.header(name).is_none() {
            faults.push(format!("missing header {name}"));
        }
    }
    let kind = request.header("content-type").unwrap_or_default();
    if !kind.starts_with("application/json") {
        faults.push(format!("wrong content type {kind:?}"));
    }
    faults
}

pub(crate) fn has_key(request: &ModelRequest, key: &str) -> bool {
    let (name, prefix) = request.wire.key_header();
    let sent = request
        .header(name)
        .and_then(|value| value.strip_prefix(prefix));
    sent == Some(key)
}

fn is_api_header(request: &ModelRequest, name: &str) -> bool {
    request.wire.key_header().0 == name || request.wire.headers().contains(&name)
}
