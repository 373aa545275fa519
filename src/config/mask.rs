//! Masks secrets in the values of settings. The name of a setting determines which part of its value is masked: for
//! example, the suffix `_secret` masks the whole value.

const MASK: &str = "***";
pub(super) const PEM: &str = "-----BEGIN";

pub(super) fn mask(name: &str, text: &str) -> String {
    if text.is_empty() {
        String::new()
    } else if text.contains(PEM) {
        // a key in a setting that should name a file
        MASK.into()
    } else if name.ends_with("_keys") && name != "max_keys"
        || name.ends_with("_secrets")
        || name.ends_with("_headers")
    {
        mask_keys(text)
    } else if ["webhooks", "upstreams", "web_search"].contains(&name) {
        mask_urls(text)
    } else if name == "signing_key" && text.contains(':') {
        // a secret in a setting that should name a key
        mask_keys(text)
    } else if name.ends_with("_secret") || name.ends_with("_key") && name != "signing_key" {
        MASK.into()
    } else if name.ends_with("_url") {
        mask_url(text)
    } else {
        text.into()
    }
}

/// Masks keys, but not their names. An entry without a colon may be a key without a name, so it is masked completely.
fn mask_keys(text: &str) -> String {
    let mask = |entry: &str| match entry.trim().split_once(':') {
        Some((name, _)) => format!("{name}:{MASK}"),
        None => MASK.into(),
    };
    text.split(',').map(mask).collect::<Vec<_>>().join(",")
}

/// Masks the path of each URL in a list of words, because the path of a webhook URL may be a secret.
fn mask_urls(text: &str) -> String {
    let mask = |word: &str| match word.split_once("://") {
        Some((scheme, rest)) => {
            let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
            let path = if host == rest { "" } else { "/***" };
            let host = host.rsplit('@').next().unwrap_or_default();
            let host = if is_host(host) { host } else { MASK };
            format!("{scheme}://{host}{path}")
        }
        // a URL without its scheme, or the part of a password after a comma
        None if word.contains('@') => MASK.into(),
        None => word.into(),
    };
    let mask = |entry: &str| entry.split_whitespace().map(mask).collect::<Vec<_>>();
    let entries = text.split(',').map(|entry| mask(entry).join(" "));
    entries.collect::<Vec<_>>().join(",")
}

/// Returns whether `text` has the form of a host with an optional port. Otherwise, `text` may be the beginning of a
/// password, and must be masked.
fn is_host(text: &str) -> bool {
    let port = match text.rsplit_once(':') {
        Some((_, port)) if !text.ends_with(']') => port,
        _ => "",
    };
    port.bytes().all(|byte| byte.is_ascii_digit())
}

/// Masks the password before the host of a URL, and the passwords in the query of a socket or sentinel URL. The user
/// name remains visible.
pub(super) fn mask_url(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://") else {
        return MASK.into();
    };
    // all text after `sentinel_password=` may be part of the password
    let (rest, hidden) = match rest.split_once("sentinel_password=") {
        Some((rest, _)) => (rest, format!("sentinel_password={MASK}")),
        None => (rest, String::new()),
    };
    // Split at the last `@`, so that an unescaped `/`, `?` or `@` in a password reveals no part of it.
    let (credentials, rest) = match rest.rsplit_once('@') {
        Some((credentials, rest)) => (Some(credentials), rest),
        None => (None, rest),
    };
    let credentials = match credentials.map(|credentials| credentials.split_once(':')) {
        Some(Some((user, _))) => format!("{user}:{MASK}@"),
        Some(None) => format!("{MASK}@"),
        None => String::new(),
    };
    let (address, query) = rest.split_once('?').unwrap_or((rest, ""));
    let parameters: Vec<_> = query
        .split('&')
        .map(|parameter| match parameter.split_once('=') {
            Some((name, _)) if name.contains("pass") => format!("{name}={MASK}"),
            _ => parameter.into(),
        })
        .collect();
    let is_bare = query.is_empty() && hidden.is_empty();
    let separator = if is_bare { "" } else { "?" };
    format!(
        "{scheme}://{credentials}{address}{separator}{}{hidden}",
        parameters.join("&")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_names_of_keys_are_shown() {
        assert_eq!(mask("signing_keys", "new:abc,old:d:e"), "new:***,old:***");
        assert_eq!(mask("api_keys", "baresecret"), "***");
        assert_eq!(mask("signing_key", "new"), "new");
        assert_eq!(mask("signing_key", "new:abc"), "new:***");
        assert_eq!(mask("identity_secret", "abc"), "***");
        assert_eq!(mask("web_search_key", "abc"), "***");
        assert_eq!(mask("identity_secret", ""), "");
        assert_eq!(
            mask("signing_keys_file", "/run/secrets/keys"),
            "/run/secrets/keys"
        );
        let pasted = "-----BEGIN PRIVATE KEY----- abc";
        assert_eq!(mask("redis_tls_key_file", pasted), "***");
    }

    #[test]
    fn endpoints_show_no_secret_and_no_path() {
        assert_eq!(
            mask("webhook_secrets", "a:whsec_b,a:c,d"),
            "a:***,a:***,***"
        );
        assert_eq!(
            mask(
                "webhooks",
                "a https://user:p@b.example/c?d thread.created,e http://f.example thread.updated"
            ),
            "a https://b.example/*** thread.created,e http://f.example thread.updated"
        );
    }

    #[test]
    fn upstreams_show_no_credentials_and_no_path() {
        for (url, masked) in [
            ("https://a.example/v1", "https://a.example/***"),
            ("http://a.example:80", "http://a.example:80"),
            ("http://[::1]/v1", "http://[::1]/***"),
            ("http://[::1]:80", "http://[::1]:80"),
            ("https://user:pass@a.example", "https://a.example"),
            ("https://user:pa,ss@a.example", "https://***,***"),
            ("https://user:pa/ss@a.example", "https://***/***"),
            ("user:pass@a.example", "***"),
            ("http:user:pass@a.example", "***"),
        ] {
            let upstream = |url| format!("a openai-chat {url},b openai-chat http://b");
            assert_eq!(mask("upstreams", &upstream(url)), upstream(masked));
        }
    }

    #[test]
    fn passwords_in_urls_are_masked() {
        for (url, masked) in [
            ("redis://localhost:6379/1", "redis://localhost:6379/1"),
            ("redis://:p@ss/w?rd@host/1", "redis://:***@host/1"),
            ("rediss://user:pass@host", "rediss://user:***@host"),
            ("redis://secret@host", "redis://***@host"),
            (
                "unix:///run/redis.sock?db=1&pass=x",
                "unix:///run/redis.sock?db=1&pass=***",
            ),
            ("host:secret", "***"),
            (
                "redis+sentinel://u:p@ss@a,b:5/main/0?sentinel_username=s&sentinel_password=x@&y",
                "redis+sentinel://u:***@a,b:5/main/0?sentinel_username=s&sentinel_password=***",
            ),
            (
                "redis+sentinel://a:1/main?sentinel_password=x@y?z",
                "redis+sentinel://a:1/main?sentinel_password=***",
            ),
            (
                "rediss+cluster://app:pa,ss@a:1,b:2",
                "rediss+cluster://app:***@a:1,b:2",
            ),
        ] {
            assert_eq!(mask_url(url), masked);
        }
    }
}
