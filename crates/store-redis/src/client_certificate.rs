//! The certificate that the server shows to Redis.

use std::io;
use std::path::PathBuf;

/// A certificate with its key, in two PEM files or one. The store reads them again before new connections, at most once a
/// second, so a renewal needs no restart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientCertificate {
    /// The file with the certificate, followed by the intermediate certificates.
    pub certificate_file: PathBuf,
    /// The file with the private key of the certificate, in PKCS#8, PKCS#1 or SEC1 form, not encrypted.
    pub key_file: PathBuf,
}

/// Why a client certificate cannot be used. No text contains any content of the files.
#[derive(Debug, thiserror::Error)]
pub enum ClientCertificateError {
    /// The file with the certificate cannot be used.
    #[error("the file with the client certificate for Redis")]
    Certificate(#[source] PemFileError),
    /// The file with the key cannot be used.
    #[error("the file with the key of the client certificate for Redis")]
    Key(#[source] PemFileError),
    /// The key belongs to another certificate than the first one in the file.
    #[error("the key must belong to the first certificate in the certificate file")]
    Mismatch,
    /// Connections to Redis are not encrypted, so no certificate would be shown.
    #[error(
        "a client certificate needs a Redis URL that begins with rediss://, rediss+sentinel:// or \
         rediss+cluster://"
    )]
    Unencrypted,
}

/// An unusable file of a certificate or a key.
#[derive(Debug, thiserror::Error)]
pub enum PemFileError {
    /// Reading failed.
    #[error("cannot read {}", .0.display())]
    Unreadable(PathBuf, #[source] io::Error),
    /// The path leads to a directory, a pipe or a device.
    #[error("{} is not a file", .0.display())]
    NotAFile(PathBuf),
    /// The size is beyond the limit, in bytes.
    #[error("the file has more than {0} bytes")]
    TooLarge(usize),
    /// A PEM section is cut off, or its content is not base64.
    #[error("the file is not in PEM form, or is incomplete")]
    Malformed,
    /// There is no certificate in the file.
    #[error("the file contains no certificate in PEM form")]
    NoCertificate,
    /// There is no private key in the file.
    #[error("the file contains no unencrypted private key in PEM form (PKCS#8, PKCS#1 or SEC1)")]
    NoKey,
    /// There are several private keys, and none is named.
    #[error("the file contains more than one private key")]
    SeveralKeys,
    /// The certificate or the key is damaged, or of a kind that is not supported.
    #[error("its content is damaged, or of a kind that is not supported")]
    Unsupported,
}
