use actix_web::web::{self, ServiceConfig};
use actix_web::{Resource, Route};

use super::fallback::{not_allowed, not_found};
use super::request::{AnyAcceptBackEnd, Target, is_for_back_ends};
use super::routes::{OF_A_THREAD, OF_THREADS, OTHERS, Path};
use super::{Api, openapi};

const THREAD: [&str; 2] = ["/v1/threads/current", "/v1/threads/{id}"];

impl Path {
    fn below(&self, thread: &str, not_allowed: fn(&'static str) -> Route) -> Resource {
        let resource = web::resource(format!("{thread}{}", self.path));
        let resource = (self.routes)().into_iter().fold(resource, Resource::route);
        resource.default_service(not_allowed(self.allow))
    }
}

impl Api {
    /// Adds the API's routes to an app. The app must also be wrapped in [`super::envelope`].
    pub fn configure(&self, config: &mut ServiceConfig) {
        config.app_data(web::Data::new(self.clone()));
        add(config, OF_THREADS);
        for thread in THREAD {
            for path in OF_A_THREAD {
                config.service(path.below(thread, not_allowed::<Target>));
            }
        }
        add(config, OTHERS);
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
        config.service(path.below("", not_allowed));
    }
}
