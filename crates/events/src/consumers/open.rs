use tokio::time::sleep;

use super::Consumer;
use crate::Outage;
use threadkeep_store::{Backend, Ledger, StoreError};

pub(super) async fn open_at_log_end(
    backend: &dyn Backend,
    consumer: &str,
) -> Result<(), StoreError> {
    let heads = backend.log_heads().await?;
    backend.open_ledger(consumer, &heads.positions).await
}

/// Reads a consumer's ledger, and retries until the store answers. Returns `None` if the ledger does not exist.
pub(super) async fn load_ledger_with_retry(consumer: &Consumer) -> Option<Ledger> {
    let mut outage = Outage::new("reading the ledger of a consumer");
    loop {
        match consumer.backend.load_ledger(&consumer.name).await {
            Ok(ledger) => {
                outage.record_success();
                return ledger;
            }
            Err(error) => sleep(outage.record_failure(&error)).await,
        }
    }
}
