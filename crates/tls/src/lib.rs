//! Encrypted connections.

/// Chooses the cryptography of the process' TLS connections, unless it was chosen before.
pub fn install_tls_provider() {
    rustls::crypto::ring::default_provider()
        .install_default()
        .ok();
}
