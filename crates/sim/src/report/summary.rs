//! Metrics of a run: its tables reduced to one value per metric. A sweep keeps the metrics if the tables would be too
//! large. The reduction is done here, run by run and in the order of the rows, so no value depends on which runs were
//! computed together.
//!
//! Length: a list of metrics, each with the line that reduces it.

use ackclock_cc::Controller;

use crate::error::Error;
use crate::report::columns::types;
use crate::tables::table::{Column, Table, NOTHING};

/// A named metric: name, one line of description, and reduction.
struct Named {
    name: &'static str,
    about: &'static str,
    of: fn(&Summary) -> f64,
}

const NAMED: &[Named] = &[
    Named {
        name: "goodput_bps",
        about: "payload acknowledged until each flow stopped, all flows, divided by the time from the first start to the last stop",
        of: |s| s.goodput(),
    },
    Named {
        name: "jain",
        about: "Jain's index of the flows' goodput: 1/n (one has all) to 1 (equal)",
        of: |s| share(s.rates * s.rates, s.flows as f64 * s.squares),
    },
    Named {
        name: "bytes_acked",
        about: "payload acknowledged, all flows",
        of: |s| s.sum("flows", "bytes_acked"),
    },
    Named {
        name: "sent_packets",
        about: "packets that the senders sent, all flows",
        of: |s| s.sum("flows", "sent_packets"),
    },
    Named {
        name: "retransmissions",
        about: "retransmissions, all flows",
        of: |s| s.sum("flows", "retransmissions"),
    },
    Named {
        name: "retransmission_share",
        about: "retransmissions divided by packets sent",
        of: |s| share(s.sum("flows", "retransmissions"), s.sum("flows", "sent_packets")),
    },
    Named { name: "rtos", about: "retransmission timeouts, all flows", of: |s| s.sum("flows", "rtos") },
    Named {
        name: "recoveries",
        about: "episodes of fast recovery, all flows",
        of: |s| s.sum("flows", "recoveries"),
    },
    Named {
        name: "mean_rtt_s",
        about: "mean RTT, averaged over the flows",
        of: |s| Reduce::Mean.of(s.values("flows", "mean_rtt_s")),
    },
    Named {
        name: "min_rtt_s",
        about: "minimum RTT of all flows",
        of: |s| Reduce::Min.of(s.values("flows", "min_rtt_s")),
    },
    Named {
        name: "p95_rtt_s",
        about: "95th percentile of all RTTs after the warm-up",
        of: |s| s.whole("p95_rtt_s"),
    },
    Named {
        name: "p95_delay_s",
        about: "95th percentile of the one-way delays of all data after the warm-up",
        of: |s| s.whole("p95_delay_s"),
    },
    Named {
        name: "loss_share",
        about: "share of data packets that were dropped after the warm-up",
        of: |s| s.whole("loss_share"),
    },
    Named {
        name: "completion_s",
        about: "time until the last flow completed; none if a flow did not complete",
        of: |s| s.completion(),
    },
    Named {
        name: "dropped_queue",
        about: "packets refused or dropped by queues, all links",
        of: |s| s.sum("links", "dropped_queue"),
    },
    Named {
        name: "dropped_loss",
        about: "packets lost by loss models, all links",
        of: |s| s.sum("links", "dropped_loss"),
    },
    Named { name: "marked", about: "packets marked, all links", of: |s| s.sum("links", "marked") },
    Named {
        name: "queue_mean_packets",
        about: "mean queue of the link whose queue is longest on average",
        of: |s| Reduce::Max.of(s.values("links", "mean_packets")),
    },
    Named {
        name: "queue_max_packets",
        about: "largest queue of all links",
        of: |s| Reduce::Max.of(s.values("links", "max_packets")),
    },
    Named {
        name: "fetches",
        about: "fetches that started",
        of: |s| Reduce::Count.of(s.values("fetches", "idx")),
    },
    Named { name: "fetches_done", about: "fetches that completed", of: |s| s.latencies.len() as f64 },
    Named {
        name: "fetch_mean_s",
        about: "mean latency of the completed fetches",
        of: |s| s.latency(Reduce::Mean),
    },
    Named {
        name: "fetch_p50_s",
        about: "median latency of the completed fetches",
        of: |s| s.latency(Reduce::Quantile(0.5)),
    },
    Named {
        name: "fetch_p95_s",
        about: "95th percentile of the latencies of the completed fetches",
        of: |s| s.latency(Reduce::Quantile(0.95)),
    },
    Named {
        name: "fetch_p99_s",
        about: "99th percentile of the latencies of the completed fetches",
        of: |s| s.latency(Reduce::Quantile(0.99)),
    },
];

/// Name and description of each named metric.
pub fn registry() -> Vec<(&'static str, &'static str)> {
    NAMED.iter().map(|metric| (metric.name, metric.about)).collect()
}

/// Reductions of a column to a number. Missing values (NaN) are ignored.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Reduce {
    Count,
    Sum,
    Mean,
    Std,
    Min,
    Max,
    /// Linear interpolation between order statistics.
    Quantile(f64),
}

impl Reduce {
    fn by_name(name: &str) -> Option<Reduce> {
        Some(match name {
            "count" => Reduce::Count,
            "sum" => Reduce::Sum,
            "mean" => Reduce::Mean,
            "std" => Reduce::Std,
            "min" => Reduce::Min,
            "max" => Reduce::Max,
            "median" => Reduce::Quantile(0.5),
            _ => {
                let digits = name.strip_prefix('p').filter(|d| !d.is_empty() && d.len() <= 2)?;
                digits
                    .bytes()
                    .all(|b| b.is_ascii_digit())
                    .then(|| digits.parse::<f64>().ok())?
                    .map(|percent| Reduce::Quantile(percent / 100.0))?
            }
        })
    }

    fn of(self, values: impl Iterator<Item = f64>) -> f64 {
        let mut values = values.filter(|v| !v.is_nan());
        match self {
            Reduce::Count => values.count() as f64,
            Reduce::Sum => values.fold(0.0, |sum, v| sum + v),
            Reduce::Min => values.next().map_or(f64::NAN, |first| values.fold(first, f64::min)),
            Reduce::Max => values.next().map_or(f64::NAN, |first| values.fold(first, f64::max)),
            Reduce::Mean => {
                let (n, sum) = values.fold((0u64, 0.0), |(n, sum), v| (n + 1, sum + v));
                if n == 0 {
                    f64::NAN
                } else {
                    sum / n as f64
                }
            }
            Reduce::Std => deviation(&values.collect::<Vec<f64>>()),
            Reduce::Quantile(q) => quantile(values.collect(), q),
        }
    }
}

/// Sample standard deviation (n - 1).
fn deviation(values: &[f64]) -> f64 {
    if values.len() < 2 {
        return f64::NAN;
    }
    let n = values.len() as f64;
    let mean = values.iter().fold(0.0, |sum, v| sum + v) / n;
    let squares = values.iter().fold(0.0, |sum, v| sum + (v - mean) * (v - mean));
    libm::sqrt(squares / (n - 1.0))
}

fn quantile(mut values: Vec<f64>, q: f64) -> f64 {
    if values.is_empty() {
        return f64::NAN;
    }
    values.sort_by(f64::total_cmp);
    let place = q * (values.len() - 1) as f64;
    let below = libm::floor(place) as usize;
    let above = (below + 1).min(values.len() - 1);
    values[below] + (values[above] - values[below]) * (place - below as f64)
}

/// One metric.
#[derive(Clone, Debug)]
enum Metric {
    /// One of the named metrics, [`NAMED`].
    Named(fn(&Summary) -> f64),
    /// "table.column.reduction".
    Column { table: String, column: String, reduce: Reduce },
}

/// The metrics stored by a sweep.
#[derive(Clone, Debug, Default)]
pub struct Metrics(Vec<Metric>);

impl Metrics {
    /// Parse metric names: either a name from the registry, or "table.column.reduction".
    pub fn parse(names: &[String]) -> Result<Metrics, Error> {
        let tables = known_tables();
        names.iter().map(|name| metric(name, &tables)).collect::<Result<_, _>>().map(Metrics)
    }

    /// Whether any of the metrics needs this table.
    pub fn need(&self, name: &str) -> bool {
        self.0.iter().any(|metric| match metric {
            Metric::Named(_) => NEEDED.contains(&name),
            Metric::Column { table, .. } => table == name,
        })
    }

    /// Value of each metric; NaN where the run has none.
    pub fn of(&self, tables: &[Table]) -> Vec<f64> {
        let mut summary: Option<Summary> = None;
        let value = |metric: &Metric| match metric {
            Metric::Named(of) => of(summary.get_or_insert_with(|| Summary::new(tables))),
            Metric::Column { table, column, reduce } => {
                let found = tables.iter().find(|t| t.name == table).and_then(|t| t.column(column));
                found.map_or(f64::NAN, |column| reduce.of(numbers(column)))
            }
        };
        self.0.iter().map(value).collect()
    }
}

/// Check the names of the tables and columns to be kept.
pub fn check_tables(wanted: &[(String, Option<Vec<String>>)]) -> Result<(), Error> {
    let tables = known_tables();
    for (name, columns) in wanted {
        let table = table_called(&tables, name, "tables")?;
        for column in columns.iter().flatten() {
            column_called(table, column, "tables")?;
        }
    }
    Ok(())
}

fn metric(name: &str, tables: &Known) -> Result<Metric, Error> {
    if let Some(known) = NAMED.iter().find(|known| known.name == name) {
        return Ok(Metric::Named(known.of));
    }
    let parts: Vec<&str> = name.split('.').collect();
    let [table, column, reduction] = parts[..] else {
        let known: Vec<&str> = NAMED.iter().map(|known| known.name).collect();
        let allowed = format!("{}, or table.column.reduction such as flows.rtos.max", known.join(", "));
        return Err(Error::value("metrics", format_args!("{name:?}"), allowed));
    };
    let found = table_called(tables, table, "metrics")?;
    if column_called(found, column, "metrics")? == "str" {
        return Err(Error::value(
            "metrics",
            format_args!("{name:?}, a column of text"),
            "a column of numbers",
        ));
    }
    let reduce = Reduce::by_name(reduction).ok_or_else(|| {
        let allowed = "count, sum, mean, std, min, max, median, p0 to p99";
        Error::value("metrics", format_args!("{reduction:?} in {name:?}"), allowed)
    })?;
    Ok(Metric::Column { table: table.to_string(), column: column.to_string(), reduce })
}

/// Table name and column names.
type Columns = (&'static str, Vec<(&'static str, &'static str)>);

fn table_called<'a>(tables: &'a Known, name: &str, place: &str) -> Result<&'a Columns, Error> {
    tables.iter().find(|(known, _)| *known == name).ok_or_else(|| {
        let known: Vec<&str> = tables.iter().map(|(name, _)| *name).collect();
        Error::value(place, format_args!("the table {name:?}"), known.join(", "))
    })
}

/// Column type.
fn column_called((table, columns): &Columns, name: &str, place: &str) -> Result<&'static str, Error> {
    columns.iter().find(|(known, _)| *known == name).map(|(_, kind)| *kind).ok_or_else(|| {
        let known: Vec<&str> = columns.iter().map(|(name, _)| *name).collect();
        Error::value(place, format_args!("the column {name:?} of {table}"), known.join(", "))
    })
}

/// All tables by name, with the names and types of their possible columns, including each controller's own variables.
type Known = Vec<Columns>;

fn known_tables() -> Known {
    let mut tables = types();
    for (_, columns) in tables.iter_mut().filter(|(name, _)| *name == "controllers") {
        for name in Controller::known_vars() {
            if !columns.iter().any(|(known, _)| *known == name) {
                columns.push((name, "f8"));
            }
        }
    }
    tables
}

/// Tables used by the metrics in [`NAMED`].
const NEEDED: [&str; 4] = ["flows", "performance", "links", "fetches"];

/// A run's tables, with cached intermediate values needed by several metrics.
#[derive(Clone)]
struct Summary<'a> {
    tables: &'a [Table],
    /// Number of flows whose goodput is defined, the sum of their goodputs, and the sum of squares.
    flows: usize,
    rates: f64,
    squares: f64,
    /// Durations of completed fetches.
    latencies: Vec<f64>,
}

impl<'a> Summary<'a> {
    fn new(tables: &'a [Table]) -> Summary<'a> {
        let mut summary = Summary { tables, flows: 0, rates: 0.0, squares: 0.0, latencies: Vec::new() };
        let goodput: Vec<f64> = summary.values("flows", "goodput_bps").collect();
        summary.flows = goodput.len();
        summary.rates = Reduce::Sum.of(goodput.iter().copied());
        summary.squares = goodput.iter().fold(0.0, |sum, x| sum + x * x);
        summary.latencies = summary.values("fetches", "total_s").filter(|v| !v.is_nan()).collect();
        summary
    }

    fn values(&self, table: &str, column: &str) -> Box<dyn Iterator<Item = f64> + 'a> {
        let table = self.tables.iter().find(|t| t.name == table);
        match table.and_then(|t| t.column(column)) {
            Some(column) => numbers(column),
            None => Box::new(std::iter::empty()),
        }
    }

    /// Goodput of all flows in one window. Rates of flows that run at different times do not add up.
    fn goodput(&self) -> f64 {
        let column = |name| self.values("flows", name);
        let spans = column("start_s").zip(column("stop_s"));
        let ran: Vec<_> = column("goodput_bps").zip(spans).filter(|(bps, _)| !bps.is_nan()).collect();
        let since = ran.iter().fold(f64::INFINITY, |least, (_, (start, _))| least.min(*start));
        let until = ran.iter().fold(f64::NEG_INFINITY, |most, (_, (_, stop))| most.max(*stop));
        if ran.iter().all(|(_, span)| *span == (since, until)) {
            return self.rates; // without a division that rounds
        }
        ran.iter().map(|(bps, (start, stop))| bps * (stop - start)).sum::<f64>() / (until - since)
    }

    fn sum(&self, table: &str, column: &str) -> f64 {
        Reduce::Sum.of(self.values(table, column))
    }

    /// Value of a `performance` column for the whole run: the last row.
    fn whole(&self, column: &str) -> f64 {
        self.values("performance", column).last().unwrap_or(f64::NAN)
    }

    fn latency(&self, reduce: Reduce) -> f64 {
        reduce.of(self.latencies.iter().copied())
    }

    fn completion(&self) -> f64 {
        let completions: Vec<f64> = self.values("flows", "completion_s").collect();
        match completions.iter().any(|c| c.is_nan()) {
            true => f64::NAN,
            false => Reduce::Max.of(completions.into_iter()),
        }
    }
}

/// Ratio of two counts; NaN if the denominator is zero.
fn share(part: f64, whole: f64) -> f64 {
    if whole == 0.0 {
        f64::NAN
    } else {
        part / whole
    }
}

fn numbers(column: &Column) -> Box<dyn Iterator<Item = f64> + '_> {
    match column {
        Column::F8(v) => Box::new(v.iter().copied()),
        Column::I8(v) => Box::new(v.iter().map(|&x| x as f64)),
        Column::U4(v) => Box::new(v.iter().map(|&x| f64::from(x))),
        Column::N4(v) => Box::new(v.iter().map(|&x| if x == NOTHING { f64::NAN } else { f64::from(x) })),
        Column::U1(v) | Column::Bool(v) => Box::new(v.iter().map(|&x| f64::from(x))),
        Column::Text { .. } => Box::new(std::iter::empty()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{parse, run};

    const SMALL: &str = r#"{"duration_ns": 2000000000, "network": {"topology": "chain",
        "bottleneck": {"rate": 10000000, "delay": 5000000, "loss": {"kind": "bernoulli", "p": 0.01},
                       "queue": {"kind": "drop-tail", "limit": {"packets": 20}}}},
        "flows": [{"profile": "linux-6", "congestion_control": "cubic", "count": 3, "workload": {"kind": "bulk"}},
                  {"profile": "linux-6", "congestion_control": "reno", "workload": {"kind": "fetch", "bytes": 5000, "count": 20}}]}"#;

    fn value(tables: &[Table], name: &str) -> f64 {
        Metrics::parse(&[name.to_string()]).expect("a metric").of(tables)[0]
    }

    #[test]
    fn named_metrics_are_what_their_line_says() {
        let tables = run(&parse(SMALL).expect("reads"), 3).expect("runs").tables;
        let flows = tables.iter().find(|t| t.name == "flows").expect("there");
        let goodput = flows.floats("goodput_bps");
        assert_eq!(goodput.len(), 4);
        let (starts, stops) = (flows.floats("start_s"), flows.floats("stop_s"));
        let bits: f64 = (0..4).map(|f| goodput[f] * (stops[f] - starts[f])).sum();
        let window = Reduce::Max.of(stops.iter().copied()) - Reduce::Min.of(starts.iter().copied());
        assert!((value(&tables, "goodput_bps") * window / bits - 1.0).abs() < 1e-12);
        let sent: i64 = flows.integers("sent_packets").iter().sum();
        let again: i64 = flows.integers("retransmissions").iter().sum();
        assert!(again > 0);
        assert_eq!(value(&tables, "retransmission_share"), again as f64 / sent as f64);
        let jain = goodput.iter().sum::<f64>().powi(2) / (4.0 * goodput.iter().map(|x| x * x).sum::<f64>());
        assert!((value(&tables, "jain") - jain).abs() < 1e-12);
        assert!(value(&tables, "completion_s").is_nan(), "bulk flows never complete");
        assert_eq!(value(&tables, "fetches_done"), value(&tables, "fetches.done.sum"));
        assert_eq!(value(&tables, "fetch_p50_s"), value(&tables, "fetches.total_s.median"));
    }

    #[test]
    fn metrics_need_no_other_tables_than_they_say() {
        let mut names: Vec<String> = NAMED.iter().map(|known| known.name.to_string()).collect();
        names.push("recoveries.idx.count".to_string());
        let scenario = parse(SMALL).expect("reads");
        let all = run(&scenario, 3).expect("runs").tables;
        for some in [&names[..], &names[..1], &names[names.len() - 1..], &[]] {
            let metrics = Metrics::parse(some).expect("metrics");
            let few = crate::runs::run::run_for(
                &scenario,
                3,
                &crate::Customs::new(),
                &crate::Bounds::NONE,
                |name| metrics.need(name),
            )
            .expect("runs")
            .tables;
            assert!(few.len() < all.len() && few.iter().all(|table| all.contains(table)));
            let bits = |tables| metrics.of(tables).into_iter().map(f64::to_bits).collect::<Vec<_>>();
            assert_eq!(bits(&few), bits(&all));
        }
        for table in &all {
            let one = crate::runs::run::run_for(
                &scenario,
                3,
                &crate::Customs::new(),
                &crate::Bounds::NONE,
                |name| name == table.name,
            )
            .expect("runs")
            .tables;
            assert_eq!(one, std::slice::from_ref(table));
        }
    }

    #[test]
    fn reductions_of_known_values() {
        let of =
            |name: &str, values: &[f64]| Reduce::by_name(name).expect("known").of(values.iter().copied());
        let values = [4.0, f64::NAN, 1.0, 3.0, 2.0];
        assert_eq!(of("count", &values), 4.0);
        assert_eq!(of("sum", &values), 10.0);
        assert_eq!(of("mean", &values), 2.5);
        assert_eq!(of("min", &values), 1.0);
        assert_eq!(of("max", &values), 4.0);
        assert_eq!(of("median", &values), 2.5);
        assert_eq!(of("p25", &values), 1.75);
        assert_eq!(of("p0", &values), 1.0);
        assert!((of("std", &values) - 1.290_994_448_735_805_6).abs() < 1e-15);
        for name in ["mean", "std", "min", "max", "median"] {
            assert!(of(name, &[f64::NAN]).is_nan(), "{name}");
        }
        assert_eq!(Reduce::by_name("p100"), None);
        assert_eq!(Reduce::by_name("p-1"), None);
    }

    #[test]
    fn unknown_names_are_refused_with_what_there_is() {
        for (name, part) in [
            ("throughput", "goodput_bps"),
            ("flow.rtos.max", "flows"),
            ("flows.rto.max", "rtos"),
            ("flows.rtos.most", "median"),
            ("links.name.max", "a column of numbers"),
        ] {
            let refused = Metrics::parse(&[name.to_string()]).expect_err(name).to_string();
            assert!(refused.contains(part), "{refused}");
        }
        assert!(check_tables(&[("flows".into(), Some(vec!["rtos".into()]))]).is_ok());
        assert!(check_tables(&[("flows".into(), Some(vec!["rto".into()]))]).is_err());
    }
}
