//! `POST` and `PUT /session`: a session of the app began or has ended. The user of the app waits for the answer,
//! so the server answers at once, whatever the state of the store. Nothing is stored.

use std::future::ready;

use actix_web::HttpResponse;
use actix_web::middleware::from_fn;
use actix_web::web::{self, ServiceConfig};
use serde_json::json;

use super::{Agentuity, AgentuityError};
use crate::frame::frame;

const METHODS: &str = "POST, PUT";

pub(super) fn routes(config: &mut ServiceConfig) {
    let refused = || {
        let allow = METHODS;
        ready(Err::<&str, _>(AgentuityError::MethodNotAllowed { allow }))
    };
    config.service(
        web::resource("/session")
            .wrap(from_fn(frame::<Agentuity, _>))
            .route(web::post().to(note_session))
            .route(web::put().to(note_session))
            .default_service(web::to(refused)),
    );
}

/// `POST /session` and `PUT /session`
async fn note_session() -> HttpResponse {
    HttpResponse::Ok().json(json!({"success": true}))
}
