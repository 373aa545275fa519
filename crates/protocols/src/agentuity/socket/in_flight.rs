//! Runs the requests of a connection. Requests for the same thread run in order of arrival. All other requests run
//! concurrently.

use std::collections::{HashMap, VecDeque};
use std::future::Future;

use futures_util::future::{LocalBoxFuture, pending};
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt as _, StreamExt as _};

use super::limits::{IN_FLIGHT_BYTES_MAX, IN_FLIGHT_MAX};
use threadkeep_domain::ThreadId;

type Job = LocalBoxFuture<'static, Done>;

#[derive(Default)]
pub(super) struct InFlight {
    running: FuturesUnordered<Job>,
    /// Waiting jobs of each thread that has a running job.
    lines: HashMap<ThreadId, VecDeque<Job>>,
    count: usize,
    bytes: usize,
}

#[derive(Debug)]
struct Done {
    thread: Option<ThreadId>,
    bytes: usize,
}

impl InFlight {
    pub(super) fn has_room(&self) -> bool {
        self.count < IN_FLIGHT_MAX && self.bytes < IN_FLIGHT_BYTES_MAX
    }

    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Starts a job that counts as `bytes` bytes. If `thread` is given, the job waits for all earlier jobs of that
    /// thread.
    pub(super) fn push(
        &mut self,
        thread: Option<ThreadId>,
        bytes: usize,
        job: impl Future<Output = ()> + 'static,
    ) {
        self.count += 1;
        self.bytes += bytes;
        let job: Job = Box::pin(async move {
            job.await;
            Done { thread, bytes }
        });
        match thread.map(|thread| (self.lines.contains_key(&thread), thread)) {
            Some((true, thread)) => self.lines.entry(thread).or_default().push_back(job),
            Some((false, thread)) => {
                self.lines.insert(thread, VecDeque::new());
                self.running.push(job);
            }
            None => self.running.push(job),
        }
    }

    /// Runs until at least one job is done. Never resolves if there are no jobs. Cancel-safe.
    pub(super) async fn settle(&mut self) {
        match self.running.next().await {
            Some(done) => self.count_out(done),
            None => pending().await,
        }
        while let Some(Some(done)) = self.running.next().now_or_never() {
            self.count_out(done);
        }
    }

    fn count_out(&mut self, done: Done) {
        self.count -= 1;
        self.bytes -= done.bytes;
        if let Some(thread) = done.thread {
            self.advance(thread);
        }
    }

    pub(super) async fn settle_all(&mut self) {
        while !self.is_empty() {
            self.settle().await;
        }
    }

    fn advance(&mut self, thread: ThreadId) {
        match self.lines.get_mut(&thread).and_then(VecDeque::pop_front) {
            Some(job) => self.running.push(job),
            None => drop(self.lines.remove(&thread)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use tokio::sync::oneshot::{Sender, channel};

    use super::*;

    /// Runs jobs that end on demand, and records which jobs have started.
    #[derive(Default)]
    struct Bench {
        in_flight: InFlight,
        begun: Rc<RefCell<Vec<&'static str>>>,
    }

    impl Bench {
        fn push(&mut self, thread: Option<ThreadId>, name: &'static str) -> Sender<()> {
            let (end, ended) = channel();
            let begun = Rc::clone(&self.begun);
            self.in_flight.push(thread, 10, async move {
                begun.borrow_mut().push(name);
                ended.await.ok();
            });
            end
        }

        fn begun(&mut self) -> Vec<&'static str> {
            while self.in_flight.settle().now_or_never().is_some() {}
            self.begun.borrow().clone()
        }
    }

    #[test]
    fn those_for_one_thread_wait_for_each_other_and_no_others_do() {
        let mut bench = Bench::default();
        let (one, other) = (Some(ThreadId::random()), Some(ThreadId::random()));

        let first = bench.push(one, "first");
        let second = bench.push(one, "second");
        let _third = bench.push(one, "third");
        let _other = bench.push(other, "other");
        let _none = bench.push(None, "none");
        assert_eq!(bench.begun(), ["first", "other", "none"]);

        drop(second);
        assert_eq!(bench.begun().len(), 3);
        drop(first);
        assert_eq!(bench.begun()[3..], ["second", "third"]);
    }

    #[test]
    fn there_is_room_until_there_are_too_many_or_too_much() {
        let mut bench = Bench::default();
        let thread = Some(ThreadId::random());

        let jobs: Vec<_> = (0..IN_FLIGHT_MAX)
            .map(|_| {
                assert!(bench.in_flight.has_room());
                bench.push(thread, "one")
            })
            .collect();
        assert!(!bench.in_flight.has_room());
        drop(jobs);
        bench.begun();
        assert!(bench.in_flight.is_empty());
        assert!(bench.in_flight.lines.is_empty());
        assert!(bench.in_flight.has_room());

        let large = async { pending().await };
        bench.in_flight.push(thread, IN_FLIGHT_BYTES_MAX, large);
        assert!(!bench.in_flight.has_room());
    }
}
