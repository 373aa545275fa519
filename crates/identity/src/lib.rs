//! Identifies callers: verifies the signed thread id of a request, and adds the signed id to the response.

#![warn(missing_docs)]

mod api_keys;
mod bearer;
mod caller;
mod client_network;
mod cookie;
#[cfg(test)]
mod fuzz;
#[cfg(feature = "jwt")]
mod jwks;
#[cfg(feature = "jwt")]
mod jwt;
mod origins;
mod owners;
mod provider;
mod proxies;
mod replacement;
mod rights;
#[cfg(feature = "jwt")]
mod ring_provider;
mod scope_grant;
#[cfg(feature = "jwt")]
mod token_fault;
mod trusted_header;
#[cfg(feature = "jwt")]
mod verifier;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use actix_web::HttpRequest;
use actix_web::http::Method;
use actix_web::http::header::{
    COOKIE, HOST, HeaderMap, HeaderName, HeaderValue, ORIGIN, SET_COOKIE,
};
use futures_util::future::BoxFuture;

use threadkeep_domain::{Excerpt, KeyRing};

#[doc(hidden)]
pub use api_keys::{ApiKey, ApiKeys};
#[doc(hidden)]
pub use bearer::bearer;
#[doc(hidden)]
pub use caller::{Caller, Source};
pub use cookie::MAX_AGE_SECONDS as COOKIE_MAX_AGE_SECONDS;
#[doc(hidden)]
pub use cookie::RejectedCookie;
use cookie::{Attributes, Cookie, cookie_values, verify, write_value};
pub use cookie::{CookieError, CookieSettings, SameSite, Secure};
#[cfg(feature = "jwt")]
pub use jwks::{Jwks, JwksCounts, JwksUrl, JwksUrlError};
#[cfg(feature = "jwt")]
pub use jwt::{JwtError, JwtSubject};
use origins::{Origins, has_origin, is_cross_site};
#[cfg(feature = "jwt")]
pub use owners::JwtOwner;
#[doc(hidden)]
pub use owners::{Behalf, Owners};
pub use owners::{HeaderOwner, OwnerProvider};
pub use provider::{ProviderError, ThreadIdProvider};
pub use proxies::{ProxyError, TrustedProxies};
#[doc(hidden)]
pub use rights::{Right, RightError, Rights};
#[doc(hidden)]
pub use scope_grant::ScopeGrant;
pub use threadkeep_domain::{KeyRingError, ThreadId, ThreadIdError};
pub use trusted_header::TrustedHeader;
#[cfg(feature = "jwt")]
pub use verifier::JwtSettings;

/// Request and response header that contains the signed thread id.
pub const THREAD_ID: HeaderName = HeaderName::from_static("x-thread-id");

#[doc(hidden)]
#[derive(Debug, Clone)]
pub struct Identity {
    ring: Arc<KeyRing>,
    cookie: Arc<Cookie>,
    proxies: Arc<TrustedProxies>,
    origins: Arc<Origins>,
    provider: Option<Arc<dyn ThreadIdProvider>>,
    owners: Option<Owners>,
    /// Flags that show which rejections were already logged. The first flag is for pages from other hosts, the second
    /// for pages behind a proxy that changes `Host`.
    logged: Arc<[AtomicBool; 2]>,
}

/// The reason for rejecting a request. The response never reveals the underlying cause.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// The header `x-thread-id` is malformed, unsigned or tampered with.
    #[error("the thread id is not signed by this service")]
    InvalidSignature,
    /// A page without write permission sent a write, with a credential that browsers add automatically, such as a
    /// cookie.
    #[error("the origin may not write by cookie")]
    OriginNotAllowed,
    /// The configured provider does not know the caller.
    #[error("the caller is unknown")]
    UnknownCaller(#[source] ProviderError),
    /// The credential for an owner was rejected.
    #[error("the server does not accept the owner of the request")]
    UnknownOwner(#[source] ProviderError),
    /// The server requires an owner, and the request has none.
    #[error("the request needs an owner")]
    OwnerRequired,
    /// The provider cannot verify callers at the moment.
    #[error("the server cannot verify callers at the moment")]
    Unavailable(#[source] ProviderError),
}

impl Identity {
    /// Identifies callers by header and cookie, signed with `ring`.
    #[must_use]
    pub fn new(ring: KeyRing, cookie: CookieSettings) -> Self {
        Self {
            ring: Arc::new(ring),
            cookie: Arc::new(Cookie::new(cookie)),
            proxies: Arc::default(),
            origins: Arc::default(),
            provider: None,
            owners: None,
            logged: Arc::default(),
        }
    }

    /// Trusts the scheme, host and client address that `proxies` report.
    #[must_use]
    pub fn trust(self, proxies: TrustedProxies) -> Self {
        Self {
            proxies: Arc::new(proxies),
            ..self
        }
    }

    /// Allows pages from `origins` to write with a cookie, like pages on the server's own host.
    #[must_use]
    pub fn allow_origins(self, origins: impl IntoIterator<Item = String>) -> Self {
        let origins = Origins {
            allowed: origins.into_iter().collect(),
            own: self.origins.own.clone(),
        };
        Self {
            origins: Arc::new(origins),
            ..self
        }
    }

    /// Treats pages from the origin `own` as the server's own, even if a proxy changes `Host`.
    #[must_use]
    pub fn at_origin(self, own: String) -> Self {
        let origins = Origins {
            allowed: self.origins.allowed.clone(),
            own: Some(own),
        };
        Self {
            origins: Arc::new(origins),
            ..self
        }
    }

    /// Takes thread ids only from `provider`. Ignores signed ids, and never generates ids.
    #[must_use]
    pub fn provide(self, provider: Arc<dyn ThreadIdProvider>) -> Self {
        Self {
            provider: Some(provider),
            ..self
        }
    }

    /// Takes the owner of each caller from `owners`.
    #[must_use]
    pub fn own(self, owners: Owners) -> Self {
        Self {
            owners: Some(owners),
            ..self
        }
    }

    /// Returns the signing keys.
    #[must_use]
    pub fn ring(&self) -> &KeyRing {
        &self.ring
    }

    /// Returns the trusted proxies.
    #[must_use]
    pub fn proxies(&self) -> &TrustedProxies {
        &self.proxies
    }

    /// Returns the thread that the provider, header or cookie names, or else a new thread. Does not access the store.
    pub fn identify(&self, request: &HttpRequest) -> Result<Caller, IdentityError> {
        if let Some(provider) = &self.provider {
            let id = provider
                .thread_id(request, &self.proxies)
                .map_err(|error| provider_error(error, IdentityError::UnknownCaller))?;
            if provider.is_ambient() {
                self.check_origin(request)?;
            }
            return Ok(Caller::of(id, Source::Provider));
        }
        if request.headers().contains_key(THREAD_ID) {
            return self.by_header(request.headers());
        }
        let mut caller = self.cookie.find(request.headers(), &self.ring);
        caller.foreign_without_cookie = is_write(request)
            && !request.headers().contains_key(COOKIE)
            && self.origins.is_foreign(request, &self.proxies);
        if caller.source == Source::Cookie {
            self.check_origin(request)
                .inspect_err(|_| self.log_rejection(request))?;
            // browsers add a `SameSite=None` cookie to requests from any site, so a write must have an `Origin` header
            let is_cross_site = self.cookie.settings.same_site == SameSite::None;
            if is_cross_site && is_write(request) && !has_origin(request) {
                return Err(IdentityError::OriginNotAllowed);
            }
        }
        Ok(caller)
    }

    /// Returns whether an owner provider is configured.
    #[must_use]
    pub fn has_owner_provider(&self) -> bool {
        self.owners.is_some()
    }

    /// Finds the owner that a caller without an API key represents. Does not access the store.
    pub fn behalf(&self, request: &HttpRequest) -> Result<Behalf, IdentityError> {
        let Some(Owners { provider, required }) = &self.owners else {
            return Ok(Behalf::Anyone);
        };
        let owner = provider
            .owner(request, &self.proxies)
            .map_err(|error| provider_error(error, IdentityError::UnknownOwner))?;
        match &owner {
            None if *required => return Err(IdentityError::OwnerRequired),
            Some(_) if provider.is_ambient() => self.check_origin(request)?,
            _ => {}
        }
        Ok(Behalf::Caller(owner))
    }

    /// Returns the time at which the credentials of a request expire, or `None` if they never expire.
    #[must_use]
    pub fn valid_until(&self, request: &HttpRequest) -> Option<SystemTime> {
        let provider = self.provider.as_ref();
        let thread = provider.and_then(|provider| provider.valid_until(request));
        let owners = self.owners.as_ref();
        let owner = owners.and_then(|owners| owners.provider.valid_until(request));
        thread.into_iter().chain(owner).min()
    }

    /// Returns a future to await before [`Self::identify`] and [`Self::behalf`], or `None` if no provider needs
    /// preparation.
    #[must_use]
    pub fn prepare(&self, request: &HttpRequest) -> Option<BoxFuture<'static, ()>> {
        let provider = self.provider.as_ref();
        let thread = provider.and_then(|provider| provider.prepare(request));
        let owners = self.owners.as_ref();
        let owner = owners.and_then(|owners| owners.provider.prepare(request));
        match (thread, owner) {
            (Some(thread), Some(owner)) => Some(Box::pin(async {
                thread.await;
                owner.await;
            })),
            (thread, owner) => thread.or(owner),
        }
    }

    /// Returns whether a provider identifies the callers.
    #[must_use]
    pub fn has_provider(&self) -> bool {
        self.provider.is_some()
    }

    /// With a provider, returns the thread that the provider names, and ignores signed ids. Without a provider, returns
    /// the thread whose signed id is in the header.
    #[must_use]
    pub fn proven_caller(&self, request: &HttpRequest) -> Option<Caller> {
        if self.has_provider() {
            return self.identify(request).ok();
        }
        self.by_header(request.headers()).ok()
    }

    /// Returns the caller's thread, or `None` if the caller is rejected or the id is new.
    #[must_use]
    pub fn known_caller(&self, request: &HttpRequest) -> Option<Caller> {
        let caller = self.identify(request).ok()?;
        (caller.source != Source::Minted).then_some(caller)
    }

    /// Returns the thread in the header `x-thread-id`. Rejects a repeated header, and an id with an invalid signature.
    pub fn by_header(&self, headers: &HeaderMap) -> Result<Caller, IdentityError> {
        let mut values = headers.get_all(THREAD_ID);
        let (Some(value), None) = (values.next(), values.next()) else {
            return Err(IdentityError::InvalidSignature);
        };
        let signed = str::from_utf8(value.as_bytes())
            .ok()
            .and_then(|text| text.split_once(';'))
            .and_then(|(id, signature)| self.ring.verify(id, signature))
            .ok_or(IdentityError::InvalidSignature)?;
        Ok(Caller {
            key_name: Some(Arc::clone(signed.key_name)),
            signed: signed.is_current.then(|| value.clone()),
            ..Caller::of(signed.id, Source::Header)
        })
    }

    /// Formats a signed id for the header.
    #[must_use]
    pub fn signed_id(&self, id: &ThreadId) -> HeaderValue {
        HeaderValue::try_from(format!("{id};{}", self.ring.sign(id)))
            .expect("ids and base64 are visible ASCII")
    }

    /// Adds the caller's signed id to a response. Always sets the header. Sets the cookie only if the browser's value
    /// changes or `renews` is true. If the id replaces another id, also sets the replacement cookie, because a late
    /// response to an earlier request could otherwise restore the old id.
    ///
    /// Does not set cookies for callers that a provider identifies, because these callers have a different credential.
    /// Does not set cookies for new callers from another site either, because the browser may have withheld an existing
    /// cookie, or a page without permission may have written to the new thread.
    pub fn add_to_response(
        &self,
        caller: &Caller,
        request: &HttpRequest,
        renews: bool,
        headers: &mut HeaderMap,
    ) {
        // false if the client already has this id, signed with the newest key
        let must_set_id = caller.signed.is_none();
        let signed = match &caller.signed {
            Some(signed) => signed.clone(),
            None => self.signed_id(&caller.id),
        };
        let is_withheld =
            is_cross_site(request) && self.cookie.settings.same_site != SameSite::None;
        let is_stranger =
            caller.source == Source::Minted && (is_withheld || self.check_origin(request).is_err());
        if caller.source != Source::Provider && !is_stranger && (must_set_id || renews) {
            let is_https = self.proxies.is_https(request);
            headers.append(SET_COOKIE, self.cookie.set(&signed, is_https));
            if let Some(replaced) = &caller.replaced {
                let cookie = &self.cookie.replacement;
                let earlier = cookie.replaced_by(replaced, request.headers(), &self.ring);
                headers.append(
                    SET_COOKIE,
                    cookie.set(&signed, replaced, &earlier, is_https),
                );
            }
        }
        headers.insert(THREAD_ID, signed);
    }

    /// Returns this service's URL as the client sees it, even behind a trusted proxy, or `None` if the host is invalid.
    #[must_use]
    pub fn address(&self, request: &HttpRequest) -> Option<String> {
        let host = self.proxies.host(request);
        let host = host.or_else(|| origins::host(request))?;
        let host = std::str::from_utf8(host).ok()?;
        let is_host = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:[]".contains(&byte);
        let is_plain = !host.is_empty() && host.bytes().all(is_host);
        let scheme = if self.proxies.is_https(request) {
            "https"
        } else {
            "http"
        };
        is_plain.then(|| format!("{scheme}://{host}"))
    }

    /// Logs only the first rejection of each kind, because a wrong setting causes every write from a page to be
    /// rejected.
    fn log_rejection(&self, request: &HttpRequest) {
        let is_proxied = origins::is_same_origin(request);
        if self.logged[usize::from(is_proxied)].swap(true, Ordering::Relaxed) {
            return;
        }
        let text = |name| {
            request
                .headers()
                .get(name)
                .and_then(|value| value.to_str().ok())
        };
        let [origin, host] = [ORIGIN, HOST].map(|name| text(name).unwrap_or_default());
        let advice = match is_proxied {
            true => "a proxy changes the Host header: let it pass the original, or set public_url",
            false => "if its pages may write, add the origin to cors_origins",
        };
        tracing::warn!(
            origin = %Excerpt(origin),
            host = %Excerpt(host),
            advice,
            "refused a page's write by cookie; further ones of this kind are not logged"
        );
    }

    /// Rejects a write from a page without write permission. Needed for credentials that browsers add automatically.
    fn check_origin(&self, request: &HttpRequest) -> Result<(), IdentityError> {
        if is_write(request) && !self.origins.may_write(request, &self.proxies) {
            return Err(IdentityError::OriginNotAllowed);
        }
        Ok(())
    }
}

fn is_write(request: &HttpRequest) -> bool {
    !matches!(
        *request.method(),
        Method::GET | Method::HEAD | Method::OPTIONS
    )
}

/// Converts a provider's error. Logs why a credential was rejected, because the response does not reveal the reason.
fn provider_error(
    error: ProviderError,
    rejected: fn(ProviderError) -> IdentityError,
) -> IdentityError {
    match &error {
        ProviderError::Unavailable => return IdentityError::Unavailable(error),
        ProviderError::Untrusted(Some(cause)) => tracing::debug!(%cause, "credential rejected"),
        ProviderError::Untrusted(None) | ProviderError::Missing => {}
    }
    rejected(error)
}

#[cfg(test)]
mod tests {
    use actix_web::http::header::COOKIE;
    use actix_web::test::TestRequest;
    use proptest::prelude::*;

    use super::*;
    use threadkeep_domain::SigningKey;

    fn identity() -> Identity {
        let key = SigningKey::new("main", b"a secret for tests of identity");
        Identity::new(KeyRing::new(vec![key]).unwrap(), CookieSettings::default())
    }

    fn identify_with(name: HeaderName, value: &[u8]) -> Option<Result<Caller, IdentityError>> {
        let value = HeaderValue::from_bytes(value).ok()?;
        let request = TestRequest::default().insert_header((name, value));
        Some(identity().identify(&request.to_http_request()))
    }

    #[test]
    fn an_issued_id_is_accepted_as_header_and_as_cookie() {
        let id = ThreadId::random();
        let caller = Caller::of(id, Source::Minted);
        let mut headers = HeaderMap::new();
        let request = TestRequest::default().to_http_request();

        identity().add_to_response(&caller, &request, false, &mut headers);

        let header = headers.get(THREAD_ID).unwrap();
        let cookie = headers.get(SET_COOKIE).unwrap().to_str().unwrap();
        let pair = cookie.split(';').next().unwrap();
        for (name, value, source) in [
            (THREAD_ID, header.as_bytes(), Source::Header),
            (COOKIE, pair.as_bytes(), Source::Cookie),
        ] {
            let caller = identify_with(name, value).unwrap().unwrap();
            assert_eq!((caller.id, caller.source), (id, source));
        }
    }

    #[test]
    fn a_non_utf8_cookie_does_not_hide_the_signed_id() {
        let id = ThreadId::random();
        let signed = identity().signed_id(&id);
        let ours = signed
            .to_str()
            .unwrap()
            .replace(';', ".")
            .replace('+', "%2B");
        let line = [b"name=\xe4; atid=\xff; atid=", ours.as_bytes()].concat();

        let caller = identify_with(COOKIE, &line).unwrap().unwrap();

        assert_eq!((caller.id, caller.source), (id, Source::Cookie));
        assert_eq!(caller.rejected_cookie, None);
    }

    proptest! {
        #[test]
        fn a_forged_header_is_rejected(
            bytes in prop::collection::vec(any::<u8>(), 0..120),
            id in "thrd_[a-zA-Z0-9]{20,62}",
            signature in "[A-Za-z0-9+/=;.%]{0,90}",
        ) {
            let forged = format!("{id};{signature}").into_bytes();
            for value in [bytes, forged] {
                if let Some(result) = identify_with(THREAD_ID, &value) {
                    prop_assert!(result.is_err());
                }
            }
        }

        #[test]
        fn a_forged_cookie_is_ignored(
            bytes in prop::collection::vec(any::<u8>(), 0..120),
            id in "thrd_[a-zA-Z0-9]{20,62}",
            signature in "[A-Za-z0-9+/=;.%]{0,90}",
        ) {
            let forged = format!("x=1; atid={id}.{signature}; atid; =").into_bytes();
            let named = [b"atid=", &bytes[..]].concat();
            for value in [bytes, forged, named] {
                if let Some(result) = identify_with(COOKIE, &value) {
                    prop_assert_eq!(result.unwrap().source, Source::Minted);
                }
            }
        }

        #[test]
        fn a_signed_id_with_one_changed_character_is_rejected(index in 0usize..82, letter in "[!-~]") {
            let signed = identity().signed_id(&ThreadId::random());
            let mut bytes = signed.as_bytes().to_vec();
            prop_assume!(bytes[index] != letter.as_bytes()[0]);
            bytes[index] = letter.as_bytes()[0];

            prop_assert!(identify_with(THREAD_ID, &bytes).unwrap().is_err());
        }
    }
}
