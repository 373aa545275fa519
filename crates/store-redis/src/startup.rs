use redis::{Value, from_redis_value};

use super::transport::{Calls, Link, command};
use super::{BUCKETS, KeyNames, Script};

use threadkeep_store::StoreError;

const VERSION_MIN: (u64, u64) = (6, 2);
/// Version of the thread layout: see `lua/shared/prelude.lua`. Version 1 did not have a grace period or events.
const LAYOUT: u32 = 2;
/// Maximum size of a value in a packed hash, as recommended in docs/redis.md.
const PACKED_VALUE_BYTES: usize = 2_048;

/// Checks the version, the eviction policy and the layout. Warns about settings that can cause data loss.
pub(super) async fn check(
    link: &Link,
    names: &KeyNames,
    wait_replicas: u16,
) -> Result<(), StoreError> {
    // hosted servers often forbid CONFIG, but not INFO
    let calls = link.calls();
    for info in calls.read_everywhere(command("INFO")).await? {
        let info: String =
            from_redis_value(info).map_err(|_| StoreError::Corrupt("INFO is no text"))?;
        check_mode(&info, link.is_cluster())?;
        check_server(&info)?;
        warn_of_few_replicas(&info, wait_replicas);
    }
    check_layout(&calls, names).await?;
    report_costly_hashes(&calls, names).await;
    Ok(())
}

/// Logs a message if Redis does not pack hashes with values of [`PACKED_VALUE_BYTES`]. Ignores a failed probe.
async fn report_costly_hashes(calls: &Calls<'_>, names: &KeyNames) {
    let mut probe = Script::ProbePacking.call(1);
    probe.arg(names.packing_probe()).arg(PACKED_VALUE_BYTES);
    if matches!(calls.write(probe).await, Ok(Value::BulkString(encoding)) if encoding == b"hashtable")
    {
        tracing::info!(
            "Redis stores small threads as hash tables, with twice the overhead; set hash-max-listpack-value \
             (Redis 6.2: hash-max-ziplist-value) to {PACKED_VALUE_BYTES}"
        );
    }
}

fn check_server(info: &str) -> Result<(), StoreError> {
    check_version(info)?;
    check_eviction(info)?;
    if field(info, "aof_enabled") == Some("0") {
        tracing::warn!(
            "Redis keeps no append-only file: a crash loses the writes since its last snapshot"
        );
    }
    Ok(())
}

/// Warns if too few replicas are attached. Does not fail, because more replicas may connect later. Until then, each
/// write reports missing replicas.
fn warn_of_few_replicas(info: &str, wanted: u16) {
    let attached = replicas(info);
    if attached < wanted {
        tracing::warn!(
            attached,
            wanted,
            "Redis has fewer replicas than writes wait for (wait_replicas): all writes are answered \
             with 503 until it has as many"
        );
    }
}

fn replicas(info: &str) -> u16 {
    field(info, "connected_slaves").map_or(0, |count| count.parse().unwrap_or(0))
}

/// Rejects a server mode that does not match the URL. If a cluster were treated as a single server, its other nodes
/// would never receive a call.
fn check_mode(info: &str, is_cluster: bool) -> Result<(), StoreError> {
    // Valkey reports `server_mode` instead of `redis_mode`
    let mode = field(info, "redis_mode").or_else(|| field(info, "server_mode"));
    if mode == Some("sentinel") {
        return Err(refused(
            "this is a sentinel; its address must begin with redis+sentinel://".into(),
        ));
    }
    match field(info, "cluster_enabled") {
        Some("1") if !is_cluster => Err(refused(
            "this Redis is a node of a cluster; its address must begin with redis+cluster://"
                .into(),
        )),
        _ => Ok(()),
    }
}

fn check_version(info: &str) -> Result<(), StoreError> {
    let version = field(info, "redis_version").unwrap_or_default();
    let mut numbers = version.split('.').map(|number| number.parse().unwrap_or(0));
    let version_numbers = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    if version_numbers < VERSION_MIN {
        return Err(refused(format!(
            "Redis {version} is too old, 6.2 is the oldest that works"
        )));
    }
    Ok(())
}

/// Rejects all eviction policies except `noeviction`. Every thread has an expiry, so even a policy that is limited to
/// keys with an expiry would evict living threads.
fn check_eviction(info: &str) -> Result<(), StoreError> {
    match field(info, "maxmemory_policy") {
        None | Some("noeviction") => Ok(()),
        Some(policy) => Err(refused(format!(
            "Redis evicts living threads when its memory is full (maxmemory-policy {policy}); \
             set it to noeviction"
        ))),
    }
}

/// Checks that no server has been reconfigured to evict threads. Skips the check if any server does not answer.
pub(super) async fn check_no_eviction(link: &Link) -> Result<(), StoreError> {
    let mut info = command("INFO");
    info.arg("memory");
    let infos = link.calls().read_everywhere(info).await;
    let infos = infos.unwrap_or_default().into_iter();
    for info in infos.filter_map(|info| from_redis_value::<String>(info).ok()) {
        check_eviction(&info).inspect_err(|_| {
            let policy = field(&info, "maxmemory_policy");
            tracing::error!(policy, "Redis evicts living threads, set noeviction");
        })?;
    }
    Ok(())
}

/// Records the layout at the first start, and compares it at later starts. With a different number of buckets, all
/// threads would seem to be missing. With different fields, threads would be unreadable.
async fn check_layout(calls: &Calls<'_>, names: &KeyNames) -> Result<(), StoreError> {
    let ours = format!("{LAYOUT} {BUCKETS}");
    let mut record = command("SET");
    record.arg(names.layout()).arg(&ours).arg("NX");
    // a repeat changes nothing
    calls.read(record).await?;
    let mut recorded = command("GET");
    recorded.arg(names.layout());
    match calls.read(recorded).await? {
        Value::BulkString(theirs) if theirs == ours.as_bytes() => Ok(()),
        _ => Err(refused(format!(
            "{} says that this prefix holds threads in another layout",
            names.layout()
        ))),
    }
}

fn field<'a>(info: &'a str, name: &str) -> Option<&'a str> {
    info.lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
        .map(str::trim)
}

fn refused(why: String) -> StoreError {
    StoreError::Unavailable(why.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_server_is_rejected() {
        assert!(check_version("redis_version:6.0.16\r\n").is_err());
        assert!(check_version("redis_version:6.2.0\r\n").is_ok());
        assert!(check_version("redis_version:7.2.4\r\nserver_name:valkey\r\n").is_ok());
    }

    #[test]
    fn a_cluster_node_is_rejected_as_a_single_server() {
        assert!(check_mode("cluster_enabled:1\r\n", false).is_err());
        assert!(check_mode("cluster_enabled:1\r\n", true).is_ok());
        assert!(check_mode("cluster_enabled:0\r\n", false).is_ok());
    }

    #[test]
    fn a_sentinel_is_rejected_as_a_single_server() {
        for info in [
            "redis_mode:sentinel\r\n",
            "redis_version:7.2.4\r\nserver_mode:sentinel\r\n",
        ] {
            let refused = check_mode(info, false).unwrap_err();

            let StoreError::Unavailable(why) = refused else {
                panic!("{refused}");
            };
            assert!(why.to_string().contains("redis+sentinel://"), "{why}");
        }
    }

    #[test]
    fn attached_replicas_are_counted() {
        assert_eq!(
            replicas("role:master\r\nconnected_slaves:2\r\nslave0:..\r\n"),
            2
        );
        assert_eq!(replicas("role:master\r\n"), 0);
    }

    #[test]
    fn every_eviction_policy_except_noeviction_is_rejected() {
        assert!(check_eviction("maxmemory_policy:allkeys-lru\r\n").is_err());
        assert!(check_eviction("maxmemory_policy:volatile-ttl\r\n").is_err());
        assert!(check_eviction("maxmemory_policy:noeviction\r\n").is_ok());
    }
}
