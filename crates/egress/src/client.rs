use std::error::Error;

use reqwest::{Client, ClientBuilder, redirect};

use threadkeep_tls::install_tls_provider;

pub const AGENT: &str = concat!("threadkeep/", env!("CARGO_PKG_VERSION"));

/// Builds a client without redirects, proxies, `Referer` headers and decompression. `configure` adds options.
///
/// Without certificate authorities on the machine, supports only HTTP and logs `consequence` as a warning.
pub fn http_client(
    consequence: &'static str,
    configure: impl Fn(ClientBuilder) -> ClientBuilder,
) -> Client {
    install_tls_provider();
    let builder = || {
        configure(
            Client::builder()
                .redirect(redirect::Policy::none())
                .no_proxy()
                .referer(false)
                // decompression stays off even if another crate in the build enables these features
                .no_gzip()
                .no_brotli()
                .no_zstd()
                .no_deflate(),
        )
    };
    builder().build().unwrap_or_else(|error| {
        tracing::warn!(
            error = &error as &dyn Error,
            "no certificate authorities: {consequence}"
        );
        builder()
            .tls_certs_only([])
            .build()
            .expect("a client that reads no certificates is built from constants")
    })
}

/// Returns whether a source of `error` is an `E`.
pub fn has_source<E: Error + 'static>(error: &dyn Error) -> bool {
    let mut source = error.source();
    while let Some(error) = source {
        if error.is::<E>() {
            return true;
        }
        source = error.source();
    }
    false
}
