use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use redis::{Client, ClientTlsConfig, ConnectionInfo, RedisError, TlsCertificates};
use rustls::ClientConfig;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::{CertifiedKey, SingleCertAndKey};

use crate::client_certificate::{ClientCertificate, ClientCertificateError, PemFileError};

/// Maximum size of a file, much larger than any certificate chain.
const FILE_BYTES_MAX: usize = 256 * 1_024;

#[derive(PartialEq, Eq)]
pub(super) struct Texts {
    certificate: Vec<u8>,
    key: Vec<u8>,
}

pub(crate) struct Pair {
    texts: Texts,
    resolver: Arc<SingleCertAndKey>,
    config: OnceLock<Arc<ClientConfig>>,
}

impl Texts {
    pub(super) fn read(files: &ClientCertificate) -> Result<Self, ClientCertificateError> {
        let certificate = read(&files.certificate_file);
        Ok(Self {
            certificate: certificate.map_err(ClientCertificateError::Certificate)?,
            key: read(&files.key_file).map_err(ClientCertificateError::Key)?,
        })
    }
}

impl Pair {
    pub(super) fn of(texts: Texts) -> Result<Self, ClientCertificateError> {
        use ClientCertificateError::{Certificate, Key, Mismatch};

        threadkeep_tls::install_tls_provider();
        let chain = chain(&texts.certificate).map_err(Certificate)?;
        let key = key(&texts.key).map_err(Key)?;
        let provider = CryptoProvider::get_default().ok_or(Key(PemFileError::Unsupported))?;
        let key = provider.key_provider.load_private_key(key);
        let key = key.map_err(|_| Key(PemFileError::Unsupported))?;
        let pair = CertifiedKey::new(chain, key);
        match pair.keys_match() {
            Ok(()) => Ok(Self {
                texts,
                resolver: Arc::new(pair.into()),
                config: OnceLock::new(),
            }),
            Err(rustls::Error::InconsistentKeys(_)) => Err(Mismatch),
            Err(_) => Err(Certificate(PemFileError::Unsupported)),
        }
    }

    pub(super) fn is_of(&self, texts: &Texts) -> bool {
        self.texts == *texts
    }

    pub(crate) fn encryption(&self) -> Result<Arc<ClientConfig>, RedisError> {
        if let Some(config) = self.config.get() {
            return Ok(Arc::clone(config));
        }
        let resolver = Arc::clone(&self.resolver);
        let config = super::verifying()?.with_client_cert_resolver(resolver);
        Ok(Arc::clone(self.config.get_or_init(|| Arc::new(config))))
    }

    /// Adds the pair to the `redis` crate's connection settings. The crate parses the PEM data itself.
    pub(crate) fn for_library(&self, info: ConnectionInfo) -> Result<ConnectionInfo, RedisError> {
        let client = ClientTlsConfig {
            client_cert: self.texts.certificate.clone(),
            client_key: self.texts.key.clone(),
        };
        let certificates = TlsCertificates {
            client_tls: Some(client),
            root_cert: None,
        };
        let client = Client::build_with_tls(info, certificates)?;
        Ok(client.get_connection_info().clone())
    }
}

pub fn check_client_certificate(files: &ClientCertificate) -> Result<(), ClientCertificateError> {
    Pair::of(Texts::read(files)?).map(drop)
}

fn read(path: &Path) -> Result<Vec<u8>, PemFileError> {
    let unreadable = |error| PemFileError::Unreadable(path.into(), error);
    // opening a pipe without a writer would block forever
    if !path.metadata().map_err(unreadable)?.is_file() {
        return Err(PemFileError::NotAFile(path.into()));
    }
    let mut text = Vec::new();
    let file = File::open(path).map_err(unreadable)?;
    let mut bounded = file.take(FILE_BYTES_MAX as u64 + 1);
    bounded.read_to_end(&mut text).map_err(unreadable)?;
    match text.len() {
        0..=FILE_BYTES_MAX => Ok(text),
        _ => Err(PemFileError::TooLarge(FILE_BYTES_MAX)),
    }
}

fn chain(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, PemFileError> {
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    // the parser's errors quote the file, which may contain secrets, so the errors must not be passed on
    match chain {
        Err(_) => Err(PemFileError::Malformed),
        Ok(chain) if chain.is_empty() => Err(PemFileError::NoCertificate),
        Ok(chain) => Ok(chain),
    }
}

fn key(pem: &[u8]) -> Result<PrivateKeyDer<'static>, PemFileError> {
    let keys: Result<Vec<_>, _> = PrivateKeyDer::pem_slice_iter(pem).collect();
    let mut keys = keys.map_err(|_| PemFileError::Malformed)?;
    match keys.len() {
        0 | 1 => keys.pop().ok_or(PemFileError::NoKey),
        _ => Err(PemFileError::SeveralKeys),
    }
}
