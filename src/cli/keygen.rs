use super::error::CliError;
use threadkeep_domain::is_name;

/// Returns a random 32-byte secret in hexadecimal, prefixed with `name:` if `name` is given.
pub(super) fn generate(name: Option<&str>) -> Result<String, CliError> {
    let secret = hex::encode(rand::random::<[u8; 32]>());
    match name {
        None => Ok(secret),
        Some(name) if is_name(name, 64) => Ok(format!("{name}:{secret}")),
        Some(_) => Err(CliError::KeyName),
    }
}
