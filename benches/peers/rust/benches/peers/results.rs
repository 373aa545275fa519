use std::time::Duration;

use super::operation::Operation;
use super::report::Row;

pub(super) struct Cell {
    rounds: Vec<Row>,
    /// Share of CPU time that other processes used, per round.
    others: Vec<f64>,
}

/// The results of one operation, and of the floor (a handler that does no work) in the same rounds.
pub(super) struct Section {
    pub(super) operation: Operation,
    pub(super) floor: Cell,
    /// A `GET` of the same number of bytes directly from Redis, for operations where this comparison is useful.
    pub(super) plain_get: Option<Cell>,
    /// Names and results of the peers, starting with threadkeep. `None` if a peer does not support the operation.
    pub(super) peers: Vec<(&'static str, Option<Cell>)>,
}

impl Section {
    pub(super) fn product(&self) -> &Cell {
        let (_, cell) = &self.peers[0];
        cell.as_ref().expect("the product has every row")
    }

    pub(super) fn measured(&self) -> impl Iterator<Item = (&'static str, &Cell)> {
        let peers = self.peers.iter();
        peers.filter_map(|(name, cell)| Some((*name, cell.as_ref()?)))
    }
}

impl Cell {
    pub(super) fn new() -> Self {
        Self {
            rounds: Vec::new(),
            others: Vec::new(),
        }
    }

    pub(super) fn add(&mut self, (row, others): (Row, f64)) {
        self.rounds.push(row);
        self.others.push(others);
    }

    pub(super) fn others(&self) -> f64 {
        self.others.iter().sum::<f64>() / self.others.len() as f64
    }

    /// Microseconds per request.
    pub(super) fn server_cpu(&self) -> f64 {
        self.median(|row| row.server_cpu)
    }

    /// Microseconds per request.
    pub(super) fn redis_cpu(&self) -> f64 {
        self.median(|row| row.redis_cpu)
    }

    pub(super) fn requests_per_second(&self) -> f64 {
        self.median(|row| row.requests_per_second)
    }

    /// Microseconds.
    pub(super) fn p50(&self) -> f64 {
        self.median(|row| micros(row.p50))
    }

    /// Microseconds.
    pub(super) fn p99(&self) -> f64 {
        self.median(|row| micros(row.p99))
    }

    /// Returns the difference between the server's highest and lowest CPU time in a round, divided by the median.
    pub(super) fn spread(&self) -> f64 {
        let values = self.sorted(|row| row.server_cpu);
        (values[values.len() - 1] - values[0]) / self.server_cpu()
    }

    fn median(&self, value: impl Fn(&Row) -> f64) -> f64 {
        let values = self.sorted(value);
        values[values.len() / 2]
    }

    fn sorted(&self, value: impl Fn(&Row) -> f64) -> Vec<f64> {
        let mut values: Vec<f64> = self.rounds.iter().map(value).collect();
        values.sort_by(f64::total_cmp);
        values
    }
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}
