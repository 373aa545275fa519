use redis::Value;

use crate::RedisStore;
use crate::shared::take;
use crate::transport::{array, bytes, command};
use threadkeep_domain::Namespace;
use threadkeep_store::{NamespacePage, NamespacePosition, StoreError};

const CORRUPT: StoreError = StoreError::Corrupt("a namespace of an unknown form");

impl RedisStore {
    pub(super) async fn list_newest(
        &self,
        after: Option<&NamespacePosition>,
        limit: usize,
    ) -> Result<NamespacePage, StoreError> {
        let [_, newest, ..] = self.names.namespaces();
        let before = after.map_or(b"+".to_vec(), |position| {
            let created = position.created_ms.to_be_bytes();
            [b"(", &created[2..], position.namespace.as_str().as_bytes()].concat()
        });
        let mut cmd = command("ZREVRANGEBYLEX");
        cmd.arg(newest).arg(before).arg("-");
        // requests one more than `limit` to find out whether the list continues
        cmd.arg("LIMIT").arg(0).arg(limit + 1);
        let calls = self.background.calls();
        let listed = array(calls.read(cmd).await?)?;
        let has_more = listed.len() > limit;
        let mut positions = self
            .unreadable
            .skip("namespaces", listed.iter().map(position));
        positions.truncate(limit);
        let mut page = NamespacePage {
            records: Vec::new(),
            next: positions.last().cloned().filter(|_| has_more),
        };
        if positions.is_empty() {
            return Ok(page);
        }
        let names: Vec<_> = positions
            .iter()
            .map(|position| position.namespace.clone())
            .collect();
        // skips namespaces that were deleted or ended after they were listed
        let seen = self.read_namespaces(&calls, &names).await?;
        let seen = self.unreadable.skip("namespaces", seen);
        page.records = seen.into_iter().filter_map(|seen| seen.record).collect();
        Ok(page)
    }
}

fn position(member: &Value) -> Result<NamespacePosition, StoreError> {
    let (mut created, name) = bytes(member)?.split_at_checked(6).ok_or(CORRUPT)?;
    let name = std::str::from_utf8(name).map_err(|_| CORRUPT)?;
    Ok(NamespacePosition {
        created_ms: take(&mut created, 6),
        namespace: Namespace::new(name).map_err(|_| CORRUPT)?,
    })
}
