//! Serves the console at `/console`. The source code is in `console/`; the built files are compiled into the program.

mod files;
mod links;
mod session;

use actix_web::web::{self, ServiceConfig};

pub use links::ConsoleLinks;
use threadkeep_http::post_only;

pub(super) fn configure(config: &mut ServiceConfig, links: Option<&ConsoleLinks>) {
    config.service(web::redirect("/console", "/console/"));
    for resource in files::resources() {
        config.service(resource);
    }
    config
        .app_data(web::Data::new(links.cloned()))
        .service(post_only("/console/session", session::open_session));
}
