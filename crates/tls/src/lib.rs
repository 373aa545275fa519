/// Installs the cryptography provider for the process's TLS connections, unless one is installed.
pub fn install_tls_provider() {
    rustls::crypto::ring::default_provider()
        .install_default()
        .ok();
}
