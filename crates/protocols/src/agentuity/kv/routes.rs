use std::future::ready;

use actix_web::guard;
use actix_web::middleware::from_fn;
use actix_web::web::{self, ServiceConfig};

use super::super::{Agentuity, AgentuityError, at};
use super::{entries, lists, namespaces, stats};
use crate::frame::frame;

/// Path prefixes. Older clients use the dated prefix.
const VERSIONS: [&str; 2] = ["/2025-03-17", ""];

pub(in super::super) fn routes(config: &mut ServiceConfig) {
    let not_found = || ready(Err::<&str, _>(AgentuityError::NotFound));
    let mut scope = web::scope("/kv").wrap(from_fn(frame::<Agentuity, _>));
    for version in VERSIONS {
        let path = |rest: &str| format!("{version}{rest}");
        // limited to GET, because other methods with these paths access namespaces
        let list = |rest: &str| web::resource(path(rest)).guard(guard::Get());
        scope = scope
            .service(
                list("/search/{namespace:[^/]*}/{keyword:[^/]*}")
                    .route(web::get().to(lists::search)),
            )
            .service(list("/keys/{namespace:[^/]*}").route(web::get().to(lists::get_keys)))
            .service(list("/stats/{namespace:[^/]*}").route(web::get().to(stats::get_stats)))
            .service(list("/stats").route(web::get().to(stats::get_all_stats)))
            .service(list("/namespaces").route(web::get().to(namespaces::list_namespaces)))
            .service(
                at(&path("/{namespace:[^/]*}/{key:[^/]*}"), "GET, PUT, DELETE")
                    .route(web::get().to(entries::get_entry))
                    .route(web::put().to(entries::put_entry))
                    .route(web::delete().to(entries::delete_entry)),
            )
            .service(
                at(&path("/{namespace:[^/]*}/{key:[^/]*}/{ttl:[^/]*}"), "PUT")
                    .route(web::put().to(entries::put_entry)),
            )
            .service(
                at(&path("/{namespace:[^/]*}"), "POST, DELETE")
                    .route(web::post().to(namespaces::create_namespace))
                    .route(web::delete().to(namespaces::delete_namespace)),
            );
    }
    config.service(scope.default_service(web::to(not_found)));
}
