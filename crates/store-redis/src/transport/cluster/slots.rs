use redis::Value;

use crate::transport::{Host, SLOTS};

const UNASSIGNED: u16 = u16::MAX;

#[derive(Debug)]
pub(super) struct SlotMap {
    masters: Vec<Host>,
    /// Replicas are never asked for data, but they can report the cluster's slots when a master is down.
    replicas: Vec<Host>,
    /// Index of each slot's master.
    owners: Box<[u16]>,
}

impl SlotMap {
    pub(super) fn empty() -> Self {
        Self {
            masters: Vec::new(),
            replicas: Vec::new(),
            owners: vec![UNASSIGNED; usize::from(SLOTS)].into(),
        }
    }

    /// Parses a reply to [CLUSTER SLOTS](https://redis.io/docs/latest/commands/cluster-slots/). Returns `None` if there
    /// are no slots. A node without a host name is assumed to have the same host as `sender`, the node that replied.
    pub(super) fn read(reply: &Value, sender: &Host) -> Option<Self> {
        let Value::Array(ranges) = reply else {
            return None;
        };
        let mut map = Self::empty();
        for range in ranges {
            map.add(range, sender)?;
        }
        (!map.masters.is_empty()).then_some(map)
    }

    /// Adds a range: first and last slot, master, replicas.
    fn add(&mut self, range: &Value, sender: &Host) -> Option<()> {
        let Value::Array(range) = range else {
            return None;
        };
        let [Value::Int(first), Value::Int(last), master, replicas @ ..] = &range[..] else {
            return None;
        };
        let master = host(master, sender)?;
        let existing = self.masters.iter().position(|host| *host == master);
        let index = existing.unwrap_or_else(|| {
            self.masters.push(master);
            self.masters.len() - 1
        });
        let slots = usize::try_from(*first).ok()?..=usize::try_from(*last).ok()?;
        self.owners.get_mut(slots)?.fill(u16::try_from(index).ok()?);
        for replica in replicas.iter().filter_map(|replica| host(replica, sender)) {
            if !self.replicas.contains(&replica) {
                self.replicas.push(replica);
            }
        }
        Some(())
    }

    pub(super) fn owner(&self, slot: u16) -> Option<&Host> {
        self.masters
            .get(usize::from(self.owners[usize::from(slot)]))
    }

    pub(super) fn masters(&self) -> &[Host] {
        &self.masters
    }

    pub(super) fn nodes(&self) -> impl Iterator<Item = &Host> {
        self.masters.iter().chain(&self.replicas)
    }
}

/// Parses the address of a node. Depending on version and settings, an unknown host is nil, an empty string or `?`.
fn host(node: &Value, sender: &Host) -> Option<Host> {
    let Value::Array(node) = node else {
        return None;
    };
    let [name, Value::Int(port), ..] = &node[..] else {
        return None;
    };
    let name = match name {
        Value::BulkString(name) => std::str::from_utf8(name).ok()?,
        Value::SimpleString(name) => name,
        Value::Nil => "",
        _ => return None,
    };
    Some(Host {
        name: known_name(name).unwrap_or(&sender.name).to_owned(),
        port: u16::try_from(*port).ok()?,
    })
}

/// Parses a redirection: `HOST:PORT`, where the host may be empty.
pub(super) fn redirected(to: &str, sender: &Host) -> Option<Host> {
    let (name, port) = to.rsplit_once(':')?;
    Some(Host {
        name: known_name(name).unwrap_or(&sender.name).to_owned(),
        port: port.parse().ok()?,
    })
}

fn known_name(name: &str) -> Option<&str> {
    Some(name).filter(|name| !matches!(*name, "" | "?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(name: Value, port: i64) -> Value {
        Value::Array(vec![name, Value::Int(port), text("id")])
    }

    fn text(text: &str) -> Value {
        Value::BulkString(text.into())
    }

    fn range(first: i64, last: i64, nodes: &[Value]) -> Value {
        let slots = [Value::Int(first), Value::Int(last)];
        Value::Array(slots.iter().chain(nodes).cloned().collect())
    }

    #[test]
    fn each_slot_has_the_master_of_its_range() {
        let sender = Host::new("asked", 1);
        let one = node(text("one"), 7000);
        let reply = Value::Array(vec![
            range(0, 99, &[one.clone(), node(text("spare"), 7001)]),
            range(
                100,
                16_382,
                &[node(Value::Nil, 7002), node(text("?"), 7003)],
            ),
            range(16_383, 16_383, &[one]),
        ]);

        let map = SlotMap::read(&reply, &sender).unwrap();

        let owner = |slot| map.owner(slot).unwrap().to_string();
        assert_eq!(owner(0), "one:7000");
        assert_eq!(owner(100), "asked:7002");
        assert_eq!(owner(16_383), "one:7000");
        assert_eq!(map.masters().len(), 2);
        let nodes: Vec<_> = map.nodes().map(ToString::to_string).collect();
        assert_eq!(
            nodes,
            ["one:7000", "asked:7002", "spare:7001", "asked:7003"]
        );
    }

    #[test]
    fn an_unassigned_slot_has_no_owner_and_a_reply_without_slots_is_no_map() {
        let sender = Host::new("asked", 1);
        let reply = Value::Array(vec![range(5, 5, &[node(text("one"), 7000)])]);

        assert!(SlotMap::read(&reply, &sender).unwrap().owner(4).is_none());
        assert!(SlotMap::read(&Value::Array(vec![]), &sender).is_none());
        let beyond = Value::Array(vec![range(0, 16_384, &[node(text("one"), 7000)])]);
        assert!(SlotMap::read(&beyond, &sender).is_none());
    }

    #[test]
    fn a_redirection_without_a_host_keeps_the_host_of_the_sender() {
        let sender = Host::new("asked", 1);

        let to = |text| redirected(text, &sender).map(|host| host.to_string());
        assert_eq!(to("10.0.0.1:7000").unwrap(), "10.0.0.1:7000");
        assert_eq!(to("2001:db8::1:7000").unwrap(), "2001:db8::1:7000");
        assert_eq!(to(":7000").unwrap(), "asked:7000");
        assert_eq!(to("nowhere"), None);
    }
}
