//! `POST` and `PUT /session`: a session of the app began or has ended. The user of the app waits for the answer,
//! so the server answers at once, whatever the state of the store. Nothing is stored.

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

/// `POST /session` and `PUT /session`
async fn note_session() -> HttpResponse {
    HttpResponse::Ok().json(json!({"success": true}))
}
