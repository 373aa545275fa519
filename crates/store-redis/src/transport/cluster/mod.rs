//! Routes commands to the nodes of a cluster, and handles redirections
//! ([specification](https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/)). A command that a node
//! did not run is redirected, or repeated until the deadline. A command that may have run is repeated only if that is
//! safe.

mod round;
mod slots;
mod topology;
mod unit;

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, join_all, select_ok};
use redis::Value;
use tokio::time::{sleep, timeout_at};

use super::node::{CallLimits, ConnectionRegistry, Fault, Mode, Node};
use super::{Call, Command, Confirmation, Endpoint, Host, key_of, slot_of};
use round::{PendingUnit, Round};
use topology::Topology;
use unit::{Outcome, To, Unit};

/// First and longest pause before a repeat.
const PAUSES: [Duration; 2] = [Duration::from_millis(5), Duration::from_millis(100)];

pub(super) struct Cluster {
    topology: Arc<Topology>,
    nodes: Nodes,
    timeout: Duration,
}

#[derive(Debug)]
struct Nodes {
    used: Mutex<HashMap<Host, Arc<Node>>>,
    bounds: CallLimits,
    mode: Mode,
    registry: Arc<ConnectionRegistry>,
}

/// When to repeat a command that got no reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Repeat {
    /// Repeat a command until the deadline if it has not run, but only once if it may have run.
    Once,
    Unrun,
    /// Never repeat, because the caller can continue without the reply.
    Never,
}

impl Cluster {
    pub(super) fn new(
        seeds: Vec<Host>,
        template: Box<Endpoint>,
        timeout: Duration,
        bounds: CallLimits,
        registry: Arc<ConnectionRegistry>,
    ) -> Self {
        Self {
            topology: Arc::new(Topology::new(seeds, template, timeout)),
            nodes: Nodes::new(bounds, Mode::Shared(None), registry),
            timeout,
        }
    }

    pub(super) fn another(&self, bounds: CallLimits, mode: Mode) -> Self {
        Self {
            topology: Arc::clone(&self.topology),
            nodes: Nodes::new(bounds, mode, Arc::clone(&self.nodes.registry)),
            timeout: self.timeout,
        }
    }

    pub(super) fn any_endpoint(&self) -> Endpoint {
        self.topology.any_endpoint()
    }

    pub(super) fn open(&self) -> u64 {
        self.topology.open()
    }

    /// Sends commands, and returns the replies in the same order. Consecutive commands for one slot form a transaction.
    pub(super) async fn call_all(
        &self,
        cmds: impl IntoIterator<Item = Command>,
        deadline: Instant,
        repeat: Repeat,
    ) -> Result<Vec<Value>, Fault> {
        let mut replies = Vec::new();
        for unit in Unit::of_all(cmds) {
            replies.extend(self.run(vec![unit], deadline, repeat).await?);
        }
        Ok(replies)
    }

    /// Sends a write. Its reply is the last.
    pub(super) async fn write(
        &self,
        cmd: Command,
        deadline: Instant,
        confirmation: Option<&Confirmation>,
    ) -> Result<Vec<Value>, Fault> {
        let unit = match confirmation {
            None => Unit::of(cmd),
            Some(confirmation) => Unit::confirmed(cmd, confirmation),
        };
        self.run(vec![unit], deadline, Repeat::Unrun).await
    }

    pub(super) async fn read_many(
        &self,
        cmds: impl IntoIterator<Item = Command>,
        deadline: Instant,
    ) -> Result<Vec<Value>, Fault> {
        let units = cmds.into_iter().map(Unit::of).collect();
        self.run(units, deadline, Repeat::Once).await
    }

    pub(super) async fn read_everywhere(
        &self,
        cmd: &Command,
        deadline: Instant,
    ) -> Result<Vec<Value>, Fault> {
        self.refresh(deadline).await?;
        let map = self.topology.map();
        if map.masters().is_empty() {
            return Err(self.topology.unserved());
        }
        let at = |master| Unit::at(master, cmd.clone());
        let units = map.masters().iter().map(at).collect();
        self.run(units, deadline, Repeat::Once).await
    }

    /// Checks that at least one master accepts writes. Each probe is a write to one key. Each master gets only the
    /// first probe with a key that the master owns.
    pub(super) async fn probe(
        &self,
        probes: impl Iterator<Item = Command>,
        deadline: Instant,
    ) -> Result<(), Fault> {
        self.refresh(deadline).await?;
        let map = self.topology.map();
        let mut by_master: BTreeMap<&Host, Command> = BTreeMap::new();
        for probe in probes {
            if let Some(owner) = key_of(&probe).and_then(|key| map.owner(slot_of(key))) {
                by_master.entry(owner).or_insert(probe);
            }
            if by_master.len() == map.masters().len() {
                break;
            }
        }
        let calls = by_master.into_iter().map(|(host, probe)| {
            let call = async move {
                let node = self.nodes.get(&self.topology, host);
                node.call(Call::new(&[probe], deadline)).await
            };
            call.boxed()
        });
        let calls: Vec<_> = calls.collect();
        if calls.is_empty() {
            self.topology.doubt();
            return Err(self.topology.unserved());
        }
        let written = select_ok(calls).await;
        // a slot may have moved
        written.map(drop).inspect_err(|_| self.topology.doubt())
    }

    /// Sends units, and returns the replies in the order of the units. The future is boxed, which makes the futures of
    /// callers that use a single server six times smaller.
    fn run(
        &self,
        units: Vec<Unit>,
        deadline: Instant,
        repeat: Repeat,
    ) -> BoxFuture<'_, Result<Vec<Value>, Fault>> {
        self.run_all(units, deadline, repeat).boxed()
    }

    async fn run_all(
        &self,
        units: Vec<Unit>,
        deadline: Instant,
        mut repeat: Repeat,
    ) -> Result<Vec<Value>, Fault> {
        let mut replies: Vec<_> = units.iter().map(|_| Vec::new()).collect();
        let indexed = units.into_iter().enumerate();
        let mut remaining: Vec<_> = indexed
            .map(|(index, unit)| PendingUnit {
                index,
                unit,
                sent_to: None,
            })
            .collect();
        let mut pause = PAUSES[0];
        while !remaining.is_empty() {
            self.refresh(deadline).await?;
            let round = self.round(remaining, deadline, &mut repeat).await?;
            for (index, reply) in round.done {
                replies[index] = reply;
            }
            remaining = round.remaining;
            if let Some(fault) = round.waits_for {
                if repeat == Repeat::Never || Instant::now() + pause >= deadline {
                    // this is not a timeout, because nothing was done
                    return Err(fault);
                }
                sleep(pause).await;
                pause = (2 * pause).min(PAUSES[1]);
            }
        }
        Ok(replies.into_iter().flatten().collect())
    }

    async fn refresh(&self, deadline: Instant) -> Result<(), Fault> {
        let refresh = self.topology.refresh(&self.nodes);
        let refreshed = timeout_at(deadline.into(), refresh).await;
        refreshed.map_err(|_| self.topology.unserved())
    }

    async fn round(
        &self,
        units: Vec<PendingUnit>,
        deadline: Instant,
        repeat: &mut Repeat,
    ) -> Result<Round, Fault> {
        let mut round = Round::default();
        let map = self.topology.map();
        let mut by_node: BTreeMap<Host, Vec<PendingUnit>> = BTreeMap::new();
        for pending in units {
            let host = match (&pending.sent_to, &pending.unit.to) {
                (Some((host, _)), _) | (None, To::Master(host)) => Some(host),
                (None, To::Slot(slot)) => map.owner(*slot),
                (None, To::Any) => self.topology.any_of(map.masters()),
            };
            match host.cloned() {
                Some(host) => by_node.entry(host).or_default().push(pending),
                None => {
                    self.topology.doubt();
                    round.wait([pending], self.topology.unserved());
                }
            }
        }
        let sent = by_node
            .into_iter()
            .map(|(host, units)| self.send(host, units, deadline));
        let may_repeat = *repeat;
        for (host, units, sent) in join_all(sent).await {
            match sent {
                Ok(replies) => {
                    let processed =
                        self.process_replies(&mut round, &host, units, replies, deadline);
                    processed.await?;
                }
                Err(fault) => {
                    self.topology.doubt();
                    // a replaced or restarted node would be back by now
                    if fault.lasts(self.timeout) && !units.iter().all(PendingUnit::is_for_any) {
                        return Err(fault);
                    }
                    if fault.may_be_done() {
                        if may_repeat != Repeat::Once || matches!(fault, Fault::Timeout) {
                            return Err(fault);
                        }
                        *repeat = Repeat::Unrun;
                    }
                    round.wait(units, fault);
                }
            }
        }
        Ok(round)
    }

    async fn send(
        &self,
        host: Host,
        units: Vec<PendingUnit>,
        deadline: Instant,
    ) -> (Host, Vec<PendingUnit>, Result<Vec<Value>, Fault>) {
        let node = self.nodes.get(&self.topology, &host);
        let mut commands = Vec::new();
        for pending in &units {
            pending.unit.write(pending.is_asking(), &mut commands);
        }
        let call = Call {
            checked: 0,
            confirmation: units.iter().find_map(|pending| pending.unit.confirmation()),
            ..Call::new(&commands, deadline)
        };
        let sent = node.call(call).await;
        (host, units, sent)
    }

    async fn process_replies(
        &self,
        round: &mut Round,
        host: &Host,
        units: Vec<PendingUnit>,
        replies: Vec<Value>,
        deadline: Instant,
    ) -> Result<(), Fault> {
        let mut replies = replies.into_iter();
        let mut lacks_scripts = false;
        for mut pending in units {
            let outcome = pending
                .unit
                .outcome(pending.is_asking(), &mut replies, host);
            match outcome {
                Outcome::Done(replies) => round.done.push((pending.index, replies)),
                Outcome::Moved(to, error) => {
                    self.topology.doubt();
                    let was_sent = pending.sent_to.replace((to, false)).is_some();
                    match was_sent {
                        // nodes that redirect to each other do not agree yet
                        true => round.wait([pending], Fault::Call(error)),
                        false => round.remaining.push(pending),
                    }
                }
                Outcome::Ask(to) => {
                    pending.sent_to = Some((to, true));
                    round.remaining.push(pending);
                }
                Outcome::MissingScript(error) => {
                    lacks_scripts = true;
                    round.wait([pending], Fault::Call(error));
                }
                Outcome::Later(error) => {
                    self.topology.doubt();
                    round.wait([pending], Fault::Call(error));
                }
                Outcome::Failed(error) => return Err(Fault::Call(error)),
                Outcome::Unconfirmed(fault) => return Err(fault),
            }
        }
        if lacks_scripts {
            let node = self.nodes.get(&self.topology, host);
            node.load(deadline).await?;
        }
        Ok(())
    }
}

impl Nodes {
    fn new(bounds: CallLimits, mode: Mode, registry: Arc<ConnectionRegistry>) -> Self {
        Self {
            used: Mutex::default(),
            bounds,
            mode,
            registry,
        }
    }

    /// Returns the node at `host`. If the node is new, adds it, and forgets the nodes that have left the cluster.
    fn get(&self, topology: &Topology, host: &Host) -> Arc<Node> {
        let mut nodes = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(node) = nodes.get(host) {
            return Arc::clone(node);
        }
        nodes.retain(|host, _| topology.knows(host));
        let server = topology.server(host, &self.registry);
        let node = Arc::new(Node::new(server, self.bounds, self.mode.clone()));
        nodes.insert(host.clone(), Arc::clone(&node));
        node
    }
}

/// Omits the password.
impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cluster").finish_non_exhaustive()
    }
}
