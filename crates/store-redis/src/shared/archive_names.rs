//! Formats the names of archives in their index: `ID-LIFE`.

use threadkeep_domain::{Life, ThreadId};
use threadkeep_store::StoreError;

const CORRUPT: StoreError = StoreError::Corrupt("an archive of an unknown form");

pub(crate) fn hex(life: Life) -> String {
    format!("{:016x}", life.0)
}

pub(crate) fn write(id: &ThreadId, life: Life) -> String {
    format!("{id}-{}", hex(life))
}

pub(crate) fn read(name: &str) -> Result<(ThreadId, Life), StoreError> {
    let (id, life) = name.split_once('-').ok_or(CORRUPT)?;
    let life = u64::from_str_radix(life, 16).map_err(|_| CORRUPT)?;
    Ok((id.parse().map_err(|_| CORRUPT)?, Life(life)))
}
