//! The console at `/console`: pages for operators. Its source is in `console/`, and its built files are in this program.

mod files;
mod links;
mod session;

use actix_web::web::{self, ServiceConfig};

pub use links::ConsoleLinks;
use threadkeep_http::post_only;

/// Adds the pages, and the path that takes one-time links if this run has them.
pub(super) fn configure(config: &mut ServiceConfig, links: Option<&ConsoleLinks>) {
    config.service(web::redirect("/console", "/console/"));
    for resource in files::resources() {
        config.service(resource);
    }
    config
        .app_data(web::Data::new(links.cloned()))
        .service(post_only("/console/session", session::open_session));
}
