//! Answers `POST` and `PUT /session`, which report that a session of the app began or ended.
//!
//! The reports are not stored. The app's user waits for the answer, so the answer must not depend on the store.

use actix_web::HttpResponse;
use actix_web::middleware::from_fn;
use actix_web::web::{self, ServiceConfig};
use serde_json::json;

use super::{Agentuity, at};
use crate::frame::frame;

pub(super) fn routes(config: &mut ServiceConfig) {
    config.service(
        at("/session", "POST, PUT")
            .wrap(from_fn(frame::<Agentuity, _>))
            .route(web::post().to(note_session))
            .route(web::put().to(note_session)),
    );
}

async fn note_session() -> HttpResponse {
    HttpResponse::Ok().json(json!({"success": true}))
}
