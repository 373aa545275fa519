use std::net::SocketAddr;
use std::sync::Arc;
use std::{fmt, io};

use futures_util::future::BoxFuture;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use super::address::is_public;

pub(crate) type Lookup =
    Arc<dyn Fn(String) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>> + Send + Sync>;

/// Resolves the host name for each connection, and returns only public addresses. The connection uses the checked
/// address, so later DNS changes have no effect.
#[derive(Clone)]
pub struct PublicResolver {
    lookup: Lookup,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the host has a private or reserved address")]
pub struct PrivateAddress;

impl PublicResolver {
    #[must_use]
    pub fn new(lookup: Lookup) -> Self {
        Self { lookup }
    }

    pub fn system() -> Self {
        Self::new(Arc::new(|host| {
            Box::pin(async move { Ok(tokio::net::lookup_host((host, 0)).await?.collect()) })
        }))
    }
}

impl Resolve for PublicResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let lookup = (self.lookup)(name.as_str().to_owned());
        Box::pin(async move {
            let mut addresses = lookup.await?;
            let has_addresses = !addresses.is_empty();
            addresses.retain(|address| is_public(address.ip()));
            if has_addresses && addresses.is_empty() {
                return Err(PrivateAddress.into());
            }
            let addresses: Addrs = Box::new(addresses.into_iter());
            Ok(addresses)
        })
    }
}

impl fmt::Debug for PublicResolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PublicResolver").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    async fn resolve(resolver: &PublicResolver, host: &str) -> Result<Vec<String>, String> {
        match resolver.resolve(host.parse().unwrap()).await {
            Ok(addresses) => Ok(addresses.map(|address| address.ip().to_string()).collect()),
            Err(error) => Err(error.to_string()),
        }
    }

    fn resolver_with(answers: &[&[&str]]) -> PublicResolver {
        let parse = |ip: &&str| SocketAddr::new(ip.parse().unwrap(), 0);
        let mut answers: Vec<Vec<_>> = answers
            .iter()
            .map(|ips| ips.iter().map(parse).collect())
            .collect();
        answers.reverse();
        let answers = Mutex::new(answers);
        PublicResolver::new(Arc::new(move |_| {
            let next = answers.lock().unwrap().pop().unwrap();
            Box::pin(async { Ok(next) })
        }))
    }

    #[tokio::test]
    async fn localhost_is_rejected() {
        let result = resolve(&PublicResolver::system(), "localhost").await;

        assert_eq!(result, Err(PrivateAddress.to_string()));
    }

    #[tokio::test]
    async fn every_lookup_is_checked() {
        let resolver = resolver_with(&[&["1.1.1.1"], &["10.0.0.1"], &["1.1.1.1"]]);

        assert_eq!(resolve(&resolver, "a").await, Ok(vec!["1.1.1.1".into()]));
        assert!(resolve(&resolver, "a").await.is_err());
        assert!(resolve(&resolver, "a").await.is_ok());
    }

    #[tokio::test]
    async fn private_addresses_are_removed_from_mixed_results() {
        let resolver = resolver_with(&[&["10.0.0.1", "1.1.1.1", "::1", "fd00::1"]]);

        assert_eq!(resolve(&resolver, "a").await, Ok(vec!["1.1.1.1".into()]));
    }
}
