use std::sync::Arc;

use subtle::ConstantTimeEq;
use tokio::sync::watch;

use crate::config::Settings;
use threadkeep_identity::{ApiKey, ApiKeys};

const API_KEY_NAME: &str = "console";

/// One-time links to the console, for a server that has no API keys and listens on a loopback address.
///
/// The server prints the links to its terminal, because it assumes that the person there is its operator. A link gives
/// access to the API key of this run. Clones share the links.
#[derive(Clone)]
pub struct ConsoleLinks {
    api_key: Arc<str>,
    token: Arc<watch::Sender<String>>,
}

impl ConsoleLinks {
    /// Returns the links of this run if `settings` specify an embedded store, a loopback address and no API keys.
    pub(in crate::app) fn for_run(settings: &Settings) -> Option<Self> {
        let is_alone = settings.store.redis_url.is_none() && settings.listen.ip().is_loopback();
        (is_alone && settings.api_keys.is_empty()).then(|| Self {
            api_key: random().into(),
            token: Arc::new(watch::Sender::new(random())),
        })
    }

    /// Returns the API key of this run, which has all rights.
    pub(crate) fn api_key(&self) -> &str {
        &self.api_key
    }

    pub(in crate::app) fn api_keys(&self) -> ApiKeys {
        ApiKeys::new([(ApiKey::named(API_KEY_NAME), &*self.api_key)])
    }

    /// Returns a receiver for the token of the next link. The token changes when the link is used.
    #[must_use]
    pub fn tokens(&self) -> watch::Receiver<String> {
        self.token.subscribe()
    }

    /// Returns the path of the link with `token`. The token is in the fragment, which browsers never send to servers.
    #[must_use]
    pub fn path(token: &str) -> String {
        format!("/console/#once={token}")
    }

    /// Returns the API key if `token` is the token of the next link. Each token works only once.
    pub(super) fn exchange(&self, token: &str) -> Option<&str> {
        let is_used = self.token.send_if_modified(|current| {
            let matches = bool::from(current.as_bytes().ct_eq(token.as_bytes()));
            if matches {
                *current = random();
            }
            matches
        });
        is_used.then_some(&*self.api_key)
    }
}

impl std::fmt::Debug for ConsoleLinks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ConsoleLinks").finish_non_exhaustive()
    }
}

fn random() -> String {
    hex::encode(rand::random::<[u8; 32]>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Layers;

    #[test]
    fn only_a_loopback_server_with_embedded_store_and_no_api_keys_has_links() {
        let has_links = |name: &str, value: &str| {
            let flags = [(name.into(), value.into())].into();
            let layers = Layers {
                flags,
                ..Layers::default()
            };
            let settings = Settings::parse(layers.merge().unwrap()).unwrap();
            ConsoleLinks::for_run(&settings).is_some()
        };

        assert!(has_links("listen", "127.0.0.1:0"));
        assert!(has_links("listen", "[::1]:8080"));
        assert!(!has_links(
            "api_keys",
            "ops:0123456789abcdef0123456789abcdef"
        ));
        assert!(!has_links("redis_url", "redis://127.0.0.1"));
    }

    #[test]
    fn a_link_opens_once_and_the_next_one_differs() {
        let links = ConsoleLinks {
            api_key: "key".into(),
            token: Arc::new(watch::Sender::new(random())),
        };
        let tokens = links.tokens();
        let first = tokens.borrow().clone();

        assert_eq!(links.exchange(&first[1..]), None);
        assert_eq!(links.exchange(&first), Some("key"));
        assert_eq!(links.exchange(&first), None);

        let second = tokens.borrow().clone();
        assert_ne!(first, second);
        assert_eq!(links.exchange(&second), Some("key"));
        assert!(!format!("{links:?}").contains(&*tokens.borrow()));
    }
}
