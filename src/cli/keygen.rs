//! New secrets.

use super::error::CliError;
use threadkeep_domain::is_name;

/// A random secret of 32 bytes as hex, after its name if it is to have one.
pub(super) fn generate(name: Option<&str>) -> Result<String, CliError> {
    let secret = hex::encode(rand::random::<[u8; 32]>());
    match name {
        None => Ok(secret),
        Some(name) if is_name(name, 64) => Ok(format!("{name}:{secret}")),
        Some(_) => Err(CliError::KeyName),
    }
}
