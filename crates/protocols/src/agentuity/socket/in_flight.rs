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
    queues: HashMap<ThreadId, VecDeque<Job>>,
    count: usize,
    bytes: usize,
}

#[derive(Debug)]
struct Done {
    thread: Option<ThreadId>,
    bytes: usize,
}

impl InFlight {
    pub(super) fn has_capacity(&self) -> bool {
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
        match thread.map(|thread| (self.queues.contains_key(&thread), thread)) {
            Some((true, thread)) => self.queues.entry(thread).or_default().push_back(job),
            Some((false, thread)) => {
                self.queues.insert(thread, VecDeque::new());
                self.running.push(job);
            }
            None => self.running.push(job),
        }
    }

    /// Runs until at least one job is done. Never resolves if there are no jobs. Cancel-safe.
    pub(super) async fn settle(&mut self) {
        match self.running.next().await {
            Some(done) => self.remove_done(done),
            None => pending().await,
        }
        while let Some(Some(done)) = self.running.next().now_or_never() {
            self.remove_done(done);
        }
    }

    fn remove_done(&mut self, done: Done) {
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
        match self.queues.get_mut(&thread).and_then(VecDeque::pop_front) {
            Some(job) => self.running.push(job),
            None => drop(self.queues.remove(&thread)),
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
    fn only_jobs_for_the_same_thread_wait_for_each_other() {
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
    fn capacity_ends_at_the_maximum_count_or_size() {
        let mut bench = Bench::default();
        let thread = Some(ThreadId::random());

        let jobs: Vec<_> = (0..IN_FLIGHT_MAX)
            .map(|_| {
                assert!(bench.in_flight.has_capacity());
                bench.push(thread, "one")
            })
            .collect();
        assert!(!bench.in_flight.has_capacity());
        drop(jobs);
        bench.begun();
        assert!(bench.in_flight.is_empty());
        assert!(bench.in_flight.queues.is_empty());
        assert!(bench.in_flight.has_capacity());

        let large = async { pending().await };
        bench.in_flight.push(thread, IN_FLIGHT_BYTES_MAX, large);
        assert!(!bench.in_flight.has_capacity());
    }
}
