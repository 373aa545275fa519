use std::future::ready;

use actix_web::http::header::{ACCEPT, CACHE_CONTROL};
use actix_web::{HttpRequest, HttpResponse, Resource, web};

use super::server_info::ServerInfo;
use threadkeep_http::read_only;

/// Handles `GET /`. Returns an HTML page, or JSON for clients that accept JSON but not HTML.
pub(super) fn resource(info: &ServerInfo) -> Resource {
    let page = web::Bytes::from(page(info));
    let json = web::Bytes::from(serde_json::json!(info).to_string());
    read_only("/", move |request: HttpRequest| {
        let (kind, body) = match wants_json(&request) {
            true => ("application/json", &json),
            false => ("text/html; charset=utf-8", &page),
        };
        let mut answer = HttpResponse::Ok();
        // the body depends on `Accept`, so caches must not store it
        let answer = answer.insert_header((CACHE_CONTROL, "no-store"));
        ready(answer.content_type(kind).body(body.clone()))
    })
}

fn wants_json(request: &HttpRequest) -> bool {
    let accept = request.headers().get(ACCEPT);
    let accept = accept.and_then(|accept| accept.to_str().ok());
    accept
        .is_some_and(|accept| accept.contains("application/json") && !accept.contains("text/html"))
}

/// Builds the HTML page. All strings in the page are constants, so they do not need to be escaped.
fn page(info: &ServerInfo) -> String {
    let title = info.title();
    let mut rows = String::new();
    for (topic, text) in info.lines("") {
        let text = match text.starts_with('/') {
            true => format!("<a href=\"{text}\">{text}</a>"),
            false => text,
        };
        rows += &format!("<dt>{topic}</dt><dd>{text}</dd>");
    }
    format!(
        "<!DOCTYPE html><html lang=\"en\"><meta charset=\"utf-8\"><title>{title}</title>\
         <style>body{{font:16px/1.5 system-ui,sans-serif;max-width:40em;margin:3em auto;\
         padding:0 1em}}dt{{font-weight:bold}}dd{{margin:0 0 1em}}</style>\
         <h1>{title}</h1><p>The server is running. It keeps the state of conversations.</p>\
         <dl>{rows}</dl></html>"
    )
}
