/// Installs the cryptography provider for the TLS connections of this process, unless one is already installed.
pub fn install_tls_provider() {
    rustls::crypto::ring::default_provider()
        .install_default()
        .ok();
}
