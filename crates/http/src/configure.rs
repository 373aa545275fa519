use actix_web::web::{self, ServiceConfig};
use actix_web::{Resource, Route};

use super::fallback::{not_allowed, not_found};
use super::request::{AnyAcceptBackEnd, Target, is_for_back_ends};
use super::routes::{COLLECTION_PATHS, OTHER_PATHS, Path, THREAD_PATHS};
use super::{Api, openapi};

const THREAD_ROOTS: [&str; 2] = ["/v1/threads/current", "/v1/threads/{id}"];

impl Path {
    fn resource(&self, root: &str, not_allowed: fn(&'static str) -> Route) -> Resource {
        let resource = web::resource(format!("{root}{}", self.path));
        let resource = (self.routes)().into_iter().fold(resource, Resource::route);
        resource.default_service(not_allowed(self.allow))
    }
}

impl Api {
    /// Adds the API's routes to an app. The app must also be wrapped in [`super::envelope`].
    pub fn configure(&self, config: &mut ServiceConfig) {
        config.app_data(web::Data::new(self.clone()));
        add(config, COLLECTION_PATHS);
        for root in THREAD_ROOTS {
            for path in THREAD_PATHS {
                config.service(path.resource(root, not_allowed::<Target>));
            }
        }
        add(config, OTHER_PATHS);
        config
            .configure(openapi::routes)
            .default_service(not_found());
    }
}

fn add(config: &mut ServiceConfig, paths: &[Path]) {
    for path in paths {
        let not_allowed = match is_for_back_ends(path.path) {
            true => not_allowed::<AnyAcceptBackEnd>,
            false => not_allowed::<()>,
        };
        config.service(path.resource("", not_allowed));
    }
}
