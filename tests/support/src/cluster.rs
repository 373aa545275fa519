use std::iter;
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use super::certificates::{Authority, Issued};
use super::redis::{RedisServer, free_port, with_free_ports};

const MASTERS: usize = 3;
const SLOTS: usize = 16_384;
const WAIT_LIMIT: Duration = Duration::from_secs(60);

/// A Redis cluster of three masters with one replica each. The nodes are killed on drop.
#[derive(Debug)]
pub struct RedisCluster {
    /// The initial masters, followed by their replicas in the same order.
    pub nodes: Vec<RedisServer>,
    pub hosts: String,
}

/// Returns a cluster for all tests that do not change it. Each test has its own key prefix. The cluster runs until the
/// test process ends, because starting it takes seconds.
pub fn shared() -> Arc<RedisCluster> {
    static SHARED: OnceLock<(Arc<RedisCluster>, Child)> = OnceLock::new();
    let (cluster, _) = SHARED.get_or_init(|| {
        let cluster = RedisCluster::start();
        let guard = cluster.guard();
        (Arc::new(cluster), guard)
    });
    Arc::clone(cluster)
}

impl RedisCluster {
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    pub fn start_with(options: &[&str]) -> Self {
        Self::start_listening(options, false)
    }

    pub fn start_encrypted(own: &Issued, authority: &Authority) -> Self {
        Self::start_encrypted_with(&RedisServer::encrypted(own, authority))
    }

    pub fn start_encrypted_with(options: &[&str]) -> Self {
        let encrypted = ["--tls-cluster", "yes", "--tls-replication", "yes"];
        Self::start_listening(&[&encrypted, options].concat(), true)
    }

    fn start_listening(options: &[&str], is_encrypted: bool) -> Self {
        let try_start = || {
            let port = free_cluster_port();
            let announced = port.to_string();
            let tls = ["--tls-port", &announced];
            let (plain, tls) = match is_encrypted {
                true => (free_port(), &tls[..]),
                false => (port, &[][..]),
            };
            // a node timeout that is long enough for a busy machine, and short enough for a failover test
            let timing = [
                "--cluster-node-timeout",
                "2000",
                "--repl-diskless-sync-delay",
                "0",
            ];
            let own = ["--cluster-enabled", "yes"];
            let options = [&own, tls, &timing, options].concat();
            let node = RedisServer::try_start_on(plain, &options)?;
            Some((announced, node))
        };
        let start = |_| with_free_ports(try_start);
        let (ports, nodes): (Vec<_>, Vec<_>) = (0..2 * MASTERS).map(start).unzip();
        let cluster = Self {
            hosts: format!("127.0.0.1:{},127.0.0.1:{}", ports[0], ports[1]),
            nodes,
        };
        for (index, node) in cluster.nodes.iter().enumerate() {
            let epoch = (index + 1).to_string();
            node.call(&["CLUSTER", "SET-CONFIG-EPOCH", &epoch]);
            if index < MASTERS {
                let [first, end] = [index, index + 1].map(|n| n * SLOTS / MASTERS);
                // Redis 6.2 does not have `ADDSLOTSRANGE`
                let slots: Vec<_> = (first..end).map(|slot| slot.to_string()).collect();
                let slots = slots.iter().map(String::as_str);
                let command: Vec<_> = ["CLUSTER", "ADDSLOTS"].into_iter().chain(slots).collect();
                node.call(&command);
            }
        }
        for port in &ports[1..] {
            cluster.nodes[0].call(&["CLUSTER", "MEET", "127.0.0.1", port]);
        }
        cluster.await_info("cluster_known_nodes", &(2 * MASTERS).to_string());
        for index in 0..MASTERS {
            let id = cluster.nodes[index].call(&["CLUSTER", "MYID"]);
            let replica = &cluster.nodes[MASTERS + index];
            until(|| replica.try_call(&["CLUSTER", "REPLICATE", &id]).is_ok());
            until(|| {
                replica
                    .call(&["INFO", "replication"])
                    .contains("master_link_status:up")
            });
        }
        cluster.await_info("cluster_state", "ok");
        // wait until all nodes know which master each replica belongs to
        until(|| {
            let nodes = cluster.nodes.iter();
            let mut views = nodes.map(|node| node.call(&["CLUSTER", "NODES"]));
            views.all(|view| view.matches("slave").count() == MASTERS)
        });
        cluster
    }

    pub fn url(&self) -> String {
        format!("redis+cluster://{}", self.hosts)
    }

    pub fn first_master(&self, slot: usize) -> &RedisServer {
        &self.nodes[master_index(slot)]
    }

    pub fn pair_with(&self, key: &str) -> [&RedisServer; 2] {
        let slot = self.nodes[0].call(&["CLUSTER", "KEYSLOT", key]);
        let index = master_index(slot.parse().unwrap());
        [&self.nodes[index], &self.nodes[MASTERS + index]]
    }

    /// Moves a slot to a different master, one key at a time, like `redis-cli --cluster reshard`. Waits until all
    /// masters know the slot's new owner.
    pub fn move_slot(&self, slot: usize, from: &RedisServer, to: &RedisServer) {
        self.begin_move(slot, from, to);
        let slot = slot.to_string();
        let mut connection = from.connection();
        loop {
            let keys: Vec<String> = redis::cmd("CLUSTER")
                .arg(&["GETKEYSINSLOT", &slot, "1"])
                .query(&mut connection)
                .unwrap();
            let Some(key) = keys.first() else {
                break;
            };
            redis::cmd("MIGRATE")
                .arg(&["127.0.0.1", &to.port().to_string(), key, "0", "5000"])
                .exec(&mut connection)
                .unwrap();
        }
        let id = to.call(&["CLUSTER", "MYID"]);
        let is_other = |node: &&RedisServer| ![from.port(), to.port()].contains(&node.port());
        let others = self.nodes[..MASTERS].iter().filter(is_other);
        // inform all masters, because a master that learns of the move only by gossip may keep an older owner
        let masters: Vec<_> = [to, from].into_iter().chain(others).collect();
        // repeat, because a message in flight may revert the move
        until(|| {
            for node in &masters {
                node.call(&["CLUSTER", "SETSLOT", &slot, "NODE", &id]);
            }
            self.agree_within(Duration::from_secs(1))
        });
    }

    pub fn begin_move(&self, slot: usize, from: &RedisServer, to: &RedisServer) {
        let [from_id, to_id] = [from, to].map(|node| node.call(&["CLUSTER", "MYID"]));
        let slot = slot.to_string();
        to.call(&["CLUSTER", "SETSLOT", &slot, "IMPORTING", &from_id]);
        from.call(&["CLUSTER", "SETSLOT", &slot, "MIGRATING", &to_id]);
    }

    fn agree_within(&self, limit: Duration) -> bool {
        let view_of = |node: &RedisServer| {
            let nodes = node.call(&["CLUSTER", "NODES"]);
            let masters = nodes.lines().filter(|line| line.contains("master"));
            let mut masters: Vec<_> = masters.map(id_epoch_and_slots).collect();
            masters.sort_unstable();
            masters
        };
        let agree = || {
            let views: Vec<_> = self.nodes[..MASTERS].iter().map(view_of).collect();
            views.iter().all(|view| *view == views[0])
        };
        let start = Instant::now();
        loop {
            if agree() {
                return true;
            }
            if start.elapsed() > limit {
                return false;
            }
            thread::sleep(Duration::from_millis(20));
        }
    }

    pub fn filled_slots(node: &RedisServer) -> Vec<usize> {
        let mut connection = node.connection();
        let slots = node.keys().into_iter().map(|key| {
            let slot = redis::cmd("CLUSTER")
                .arg("KEYSLOT")
                .arg(key)
                .query(&mut connection);
            slot.unwrap()
        });
        let mut slots: Vec<_> = slots.collect();
        slots.sort_unstable();
        slots.dedup();
        slots
    }

    pub fn errors(&self, kind: &str) -> u64 {
        let count_errors = |node: &RedisServer| {
            let stats = node.call(&["INFO", "errorstats"]);
            let name = format!("errorstat_{kind}:count=");
            let count = stats
                .lines()
                .find_map(|line| line.strip_prefix(&name)?.parse().ok());
            count.unwrap_or(0)
        };
        self.nodes.iter().map(count_errors).sum::<u64>()
    }

    /// Starts a guard process that kills the nodes when this process ends. The guard notices the end because its input
    /// pipe closes.
    fn guard(&self) -> Child {
        let pids = self.nodes.iter().map(|node| node.pid().to_string());
        let dirs = self
            .nodes
            .iter()
            .map(|node| node.dir().display().to_string());
        let [pids, dirs] = [pids.collect::<Vec<_>>(), dirs.collect()].map(|words| words.join(" "));
        Command::new("sh")
            .args(["-c", &format!("read _; kill -9 {pids}; rm -rf {dirs}")])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap()
    }

    pub fn await_info(&self, field: &str, value: &str) {
        let line = format!("{field}:{value}\r\n");
        let has_line = |node: &RedisServer| node.call(&["CLUSTER", "INFO"]).contains(&line);
        until(|| self.nodes.iter().all(has_line));
    }
}

/// Finds a free port whose cluster bus port, 10,000 higher, is also free. Redis 6.2 cannot use a different bus port.
fn free_cluster_port() -> u16 {
    let is_bus_port_free = |port: &u16| {
        let bus = port.checked_add(10_000);
        bus.is_some_and(|bus| TcpListener::bind(("127.0.0.1", bus)).is_ok())
    };
    let mut ports = iter::repeat_with(free_port);
    ports.find(is_bus_port_free).unwrap()
}

fn master_index(slot: usize) -> usize {
    let mut indices = 0..MASTERS;
    let index = indices.find(|index| slot < (index + 1) * SLOTS / MASTERS);
    index.unwrap()
}

fn id_epoch_and_slots(line: &str) -> Vec<String> {
    let fields: Vec<_> = line.split_whitespace().collect();
    let slots = fields[8..].iter().filter(|slot| !slot.starts_with('['));
    let fields = [fields[0], fields[6]].into_iter().chain(slots.copied());
    fields.map(str::to_owned).collect()
}

fn until(condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(
            start.elapsed() < WAIT_LIMIT,
            "the cluster does not become ready"
        );
        thread::sleep(Duration::from_millis(20));
    }
}
