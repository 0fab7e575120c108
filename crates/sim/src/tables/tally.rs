//! Transactions: one row for each, or sums and a histogram per group and initial window, with a size independent of
//! the number of transactions.

use ackclock_core::{choice, FlowId, Span, Time};

use crate::tables::histogram::Histogram;

/// Level of detail in the transaction record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "values of a key, documented in docs/reference/scenario.md")]
pub enum TransactionLevel {
    #[default]
    Rows,
    Summary,
}

choice! { TransactionLevel: Rows "rows", Summary "summary" }

/// A transaction: a request and its response. The first one of a connection includes the connection setup.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "columns of table `transactions`, by name")]
pub struct TransactionRow {
    pub flow: FlowId,
    pub idx: u32,
    /// Client number, from 0. Connections that a client opens at once share it.
    pub batch: u32,
    /// Index among the connection's requests.
    pub request: u32,
    pub iw: u32,
    /// Arrival time of the client, or time of a later request.
    pub arrival: Time,
    pub connected: Time,
    pub first_byte: Time,
    pub completed: Time,
    pub bytes: u64,
    pub counts: Counts,
    pub failed: bool,
}

/// One message of a conversation.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "columns of table `conversations`, by name")]
pub struct MessageRow {
    pub flow: FlowId,
    pub stream: u32,
    pub round: u32,
    pub step: u32,
    pub message: u32,
    /// Host that writes the message.
    pub writer: u32,
    pub bytes: u64,
    pub writes: u32,
    pub start: Time,
    pub first_byte: Time,
    pub arrived: Time,
}

/// Segments and timeouts of a connection during a transaction.
#[derive(Clone, Copy, Debug, Default)]
#[allow(missing_docs, reason = "columns of table `transactions`, by name")]
pub struct Counts {
    pub segments_sent: u64,
    pub retransmissions: u64,
    pub rtos: u64,
    pub syn_retransmissions: u64,
    pub synack_retransmissions: u64,
}

/// Sums over the transactions of a group that started with the same initial window.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "columns of table `transaction_summary`, by name")]
pub struct Tally {
    pub group: u32,
    pub iw: u32,
    pub started: u64,
    pub completed: u64,
    pub failed: u64,
    /// Connections refused because of the limit on open connections.
    pub refused: u64,
    pub bytes: u64,
    /// Wire bytes of the data packets in all requested responses, each counted once.
    pub offered_bytes: u64,
    pub counts: Counts,
    pub max_open: u32,
    pub least: Span,
    pub most: Span,
    sum: u128,
    squares: u128,
    connect_sum: u128,
    connects: u64,
    /// Completion times.
    pub times: Histogram,
}

impl Tally {
    /// Return an empty tally.
    pub fn new(group: u32, iw: u32) -> Tally {
        Tally {
            group,
            iw,
            started: 0,
            completed: 0,
            failed: 0,
            refused: 0,
            bytes: 0,
            offered_bytes: 0,
            counts: Counts::default(),
            max_open: 0,
            least: Span::MAX,
            most: Span::ZERO,
            sum: 0,
            squares: 0,
            connect_sum: 0,
            connects: 0,
            times: Histogram::default(),
        }
    }

    /// Number of transactions that neither completed nor failed.
    pub fn incomplete(&self) -> u64 {
        self.started - self.completed - self.failed
    }

    /// Mean completion time, s; NaN if no transaction completed.
    pub fn mean_s(&self) -> f64 {
        self.sum as f64 / self.completed as f64 * 1e-9
    }

    /// Standard deviation of completion times, s; NaN for fewer than two.
    pub fn deviation_s(&self) -> f64 {
        let n = self.completed as f64;
        let centred = self.squares as f64 - self.sum as f64 * (self.sum as f64 / n);
        libm::sqrt((centred / (n - 1.0)).max(0.0)) * 1e-9
    }

    /// Mean setup time of established connections, s.
    pub fn mean_connect_s(&self) -> f64 {
        self.connect_sum as f64 / self.connects as f64 * 1e-9
    }

    fn add(&mut self, row: &TransactionRow) {
        self.failed += row.failed as u64;
        self.counts.add(&row.counts);
        if row.connected != Time::NEVER && row.request == 0 {
            self.connects += 1;
            self.connect_sum += (row.connected - row.arrival).0 as u128;
        }
        if row.completed == Time::NEVER {
            return;
        }
        let took = row.completed - row.arrival;
        self.completed += 1;
        self.bytes += row.bytes;
        self.least = self.least.min(took);
        self.most = self.most.max(took);
        self.sum += took.0 as u128;
        self.squares += (took.0 as u128).pow(2);
        self.times.add(took);
    }
}

impl Counts {
    /// Add other counts.
    pub fn add(&mut self, other: &Counts) {
        self.segments_sent += other.segments_sent;
        self.retransmissions += other.retransmissions;
        self.rtos += other.rtos;
        self.syn_retransmissions += other.syn_retransmissions;
        self.synack_retransmissions += other.synack_retransmissions;
    }

    /// Increase since an earlier reading.
    pub fn since(&self, earlier: &Counts) -> Counts {
        Counts {
            segments_sent: self.segments_sent - earlier.segments_sent,
            retransmissions: self.retransmissions - earlier.retransmissions,
            rtos: self.rtos - earlier.rtos,
            syn_retransmissions: self.syn_retransmissions - earlier.syn_retransmissions,
            synack_retransmissions: self.synack_retransmissions - earlier.synack_retransmissions,
        }
    }
}

/// Record of all transactions in a run.
#[derive(Clone, Default)]
pub struct TransactionLog {
    /// Level of detail.
    pub level: TransactionLevel,
    /// Transactions that start before this time are not counted in tallies.
    pub from: Time,
    /// Transactions that have ended, in the order in which they ended.
    pub rows: Vec<TransactionRow>,
    /// One tally for each group and initial window.
    pub tallies: Vec<Tally>,
    /// Messages of conversations, in the order of their first writes.
    pub messages: Vec<MessageRow>,
}

impl TransactionLog {
    /// Count a transaction in tally `at`: it begins at `now`, its data packets occupy `bytes` on the wire, and `open`
    /// connections are open.
    pub fn begin(&mut self, at: u32, now: Time, bytes: u64, open: u32) {
        if now >= self.from {
            let tally = &mut self.tallies[at as usize];
            tally.started += 1;
            tally.offered_bytes += bytes;
            tally.max_open = tally.max_open.max(open);
        }
    }

    /// Count a client of tally `at` that is refused at `now`.
    pub fn refuse(&mut self, at: u32, now: Time) {
        self.tallies[at as usize].refused += (now >= self.from) as u64;
    }

    /// Record a transaction in tally `at` that has ended, or is cut off by the end of the run.
    pub fn keep(&mut self, at: u32, row: &TransactionRow) {
        if row.arrival >= self.from {
            self.tallies[at as usize].add(row);
        }
        if self.level == TransactionLevel::Rows {
            self.rows.push(*row);
        }
    }
}
