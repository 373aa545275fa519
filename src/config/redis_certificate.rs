use std::path::PathBuf;

use super::mask::PEM;
use super::{Fault, Given, RedisUrl, SettingsError, Values};
use threadkeep_store_redis::{ClientCertificate, ClientCertificateError, check_client_certificate};

const CERTIFICATE: &str = "redis_tls_cert_file";
const KEY: &str = "redis_tls_key_file";

pub(super) fn read(
    values: &mut Values,
    url: Option<&RedisUrl>,
) -> Result<Option<ClientCertificate>, SettingsError> {
    let [certificate, key] = [CERTIFICATE, KEY].map(|name| values.take(name));
    let [certificate_file, key_file] = [path(&certificate)?, path(&key)?];
    let (certificate_file, key_file) = match (certificate_file, key_file) {
        (None, None) => return Ok(None),
        (Some(_), None) => return Err(key.refuse(Fault::Needed("as `redis_tls_cert_file` is set"))),
        (None, Some(_)) => {
            return Err(certificate.refuse(Fault::Needed("as `redis_tls_key_file` is set")));
        }
        (Some(certificate_file), Some(key_file)) => (certificate_file, key_file),
    };
    if !url.is_some_and(RedisUrl::is_encrypted) {
        let rule = "empty, unless `redis_url` begins with rediss://, rediss+sentinel:// or rediss+cluster://";
        return Err(certificate.refuse(Fault::Expected(rule)));
    }
    let files = ClientCertificate {
        certificate_file,
        key_file,
    };
    check(&files, &certificate, &key)?;
    Ok(Some(files))
}

/// Returns the path of the file. Rejects a value that contains a key or a certificate in PEM format instead of a path,
/// because later error messages show the path.
fn path(given: &Given) -> Result<Option<PathBuf>, SettingsError> {
    match given.filled() {
        Some(text) if text.contains(PEM) => {
            Err(given.refuse(Fault::Expected("the path of a file")))
        }
        text => Ok(text.map(PathBuf::from)),
    }
}

fn check(files: &ClientCertificate, certificate: &Given, key: &Given) -> Result<(), SettingsError> {
    check_client_certificate(files).map_err(|error| match error {
        ClientCertificateError::Certificate(fault) => {
            certificate.refuse(Fault::Other(Box::new(fault)))
        }
        ClientCertificateError::Key(fault) => key.refuse(Fault::Other(Box::new(fault))),
        error => key.refuse(Fault::Other(Box::new(error))),
    })
}
