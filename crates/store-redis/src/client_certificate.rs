use std::io;
use std::path::PathBuf;

/// A client certificate and its key, in two PEM files or in one. The files are read again before new connections, at
/// most once a second, so that a renewed certificate takes effect without a restart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientCertificate {
    /// The certificate, followed by its intermediate certificates.
    pub certificate_file: PathBuf,
    /// The private key, unencrypted, in PKCS#8, PKCS#1 or SEC1 form.
    pub key_file: PathBuf,
}

/// The reason why a client certificate is unusable. The messages never contain file contents.
#[derive(Debug, thiserror::Error)]
pub enum ClientCertificateError {
    #[error("the file with the client certificate for Redis")]
    Certificate(#[source] PemFileError),
    #[error("the file with the key of the client certificate for Redis")]
    Key(#[source] PemFileError),
    #[error("the key must belong to the first certificate in the certificate file")]
    Mismatch,
    #[error(
        "a client certificate needs a Redis URL that begins with rediss://, rediss+sentinel:// or \
         rediss+cluster://"
    )]
    Unencrypted,
}

#[derive(Debug, thiserror::Error)]
pub enum PemFileError {
    #[error("cannot read {}", .0.display())]
    Unreadable(PathBuf, #[source] io::Error),
    #[error("{} is not a file", .0.display())]
    NotAFile(PathBuf),
    #[error("the file has more than {0} bytes")]
    TooLarge(usize),
    #[error("the file is not in PEM form, or is incomplete")]
    Malformed,
    #[error("the file contains no certificate in PEM form")]
    NoCertificate,
    #[error("the file contains no unencrypted private key in PEM form (PKCS#8, PKCS#1 or SEC1)")]
    NoKey,
    #[error("the file contains more than one private key")]
    SeveralKeys,
    #[error("its content is damaged, or of a kind that is not supported")]
    Unsupported,
}
