//! Where a new consumer begins.

use crate::store::{Backend, StoreError};

/// Makes a consumer, unless it is known, to which all counts that happens from now on.
pub(super) async fn at_the_end(backend: &dyn Backend, consumer: &str) -> Result<(), StoreError> {
    let heads = backend.log_heads().await?;
    backend.open_ledger(consumer, &heads.positions).await
}
