use actix_web::http::header::{AUTHORIZATION, HeaderMap};

/// A credential that matches no key and no token.
const MATCHES_NOTHING: &str = "";

/// Returns the bearer credential. If there are several `Authorization` headers, returns a credential that is never
/// valid, because a proxy may have checked only one of the headers.
#[must_use]
pub fn bearer(headers: &HeaderMap) -> Option<&str> {
    let mut values = headers.get_all(AUTHORIZATION);
    let value = values.next()?;
    if values.next().is_some() {
        return Some(MATCHES_NOTHING);
    }
    let (scheme, credential) = value.to_str().ok()?.split_once(' ')?;
    let credential = credential.trim();
    let is_bearer = scheme.eq_ignore_ascii_case("bearer") && !credential.is_empty();
    is_bearer.then_some(credential)
}
