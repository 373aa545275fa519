//! Lists with a record that cannot be read.

use crate::store::StoreError;

/// The readable records of a list. A bad record is logged and left out, so that it does not cost its
/// readers all the others.
pub(super) fn readable<T>(
    list: &'static str,
    records: impl IntoIterator<Item = Result<T, StoreError>>,
) -> Vec<T> {
    let records = records.into_iter();
    records
        .filter_map(|record| unless_bad(list, record))
        .collect()
}

/// The same for one record of such a list.
pub(super) fn unless_bad<T>(list: &'static str, record: Result<T, StoreError>) -> Option<T> {
    record
        .inspect_err(|error| tracing::error!(%error, list, "a record cannot be read"))
        .ok()
}
