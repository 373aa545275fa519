use percent_encoding::percent_decode_str;

use super::error::CliError;
use crate::config::Settings;
use threadkeep_domain::{KeyRing, ThreadId};

pub(super) fn sign(settings: Settings, id: &str) -> Result<String, CliError> {
    let id: ThreadId = id.parse()?;
    Ok(format!("{id};{}", ring(settings)?.sign(&id)))
}

/// Verifies a signed id from the header or the cookie, and returns the thread id and the name of the signing key.
pub(super) fn verify(settings: Settings, signed: &str) -> Result<String, CliError> {
    let ring = ring(settings)?;
    let decoded = percent_decode_str(signed).decode_utf8_lossy();
    let parts = signed.split_once(';').or_else(|| decoded.split_once('.'));
    let (id, signature) = parts.ok_or(CliError::NotVerified)?;
    let signed = ring.verify(id, signature).ok_or(CliError::NotVerified)?;
    Ok(format!("{} {}", signed.id, signed.key_name))
}

fn ring(settings: Settings) -> Result<KeyRing, CliError> {
    settings.signing_keys.ok_or(CliError::NoSigningKey)
}
