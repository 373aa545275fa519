use redis::Value;

use crate::RedisStore;
use crate::shared::take;
use crate::transport::{array, bytes, command};
use threadkeep_domain::Namespace;
use threadkeep_store::{NamespacePage, NamespacePlace, StoreError};

const CORRUPT: StoreError = StoreError::Corrupt("a namespace of an unknown form");

impl RedisStore {
    pub(super) async fn list_newest(
        &self,
        after: Option<&NamespacePlace>,
        limit: usize,
    ) -> Result<NamespacePage, StoreError> {
        let [_, newest, ..] = self.names.namespaces();
        let before = after.map_or(b"+".to_vec(), |place| {
            let created = place.created_ms.to_be_bytes();
            [b"(", &created[2..], place.namespace.as_str().as_bytes()].concat()
        });
        let mut cmd = command("ZREVRANGEBYLEX");
        cmd.arg(newest).arg(before).arg("-");
        // requests one more than `limit` to find out whether the list continues
        cmd.arg("LIMIT").arg(0).arg(limit + 1);
        let calls = self.background.calls();
        let listed = array(calls.read(cmd).await?)?;
        let is_more = listed.len() > limit;
        let mut places = self.unreadable.skip("namespaces", listed.iter().map(place));
        places.truncate(limit);
        let mut page = NamespacePage {
            records: Vec::new(),
            next: places.last().cloned().filter(|_| is_more),
        };
        if places.is_empty() {
            return Ok(page);
        }
        let names: Vec<_> = places.iter().map(|place| place.namespace.clone()).collect();
        // skips namespaces that were deleted or ended after they were listed
        let seen = self.look_at(&calls, &names).await?;
        let seen = self.unreadable.skip("namespaces", seen);
        page.records = seen.into_iter().filter_map(|seen| seen.record).collect();
        Ok(page)
    }
}

fn place(member: &Value) -> Result<NamespacePlace, StoreError> {
    let (mut created, name) = bytes(member)?.split_at_checked(6).ok_or(CORRUPT)?;
    let name = std::str::from_utf8(name).map_err(|_| CORRUPT)?;
    Ok(NamespacePlace {
        created_ms: take(&mut created, 6),
        namespace: Namespace::new(name).map_err(|_| CORRUPT)?,
    })
}
