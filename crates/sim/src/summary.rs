//! Numbers of a run: its tables reduced to one value per metric. A sweep keeps these where the tables would be too much.
//! They are reduced here, run by run and in the order of the rows, so that no value depends on which runs were computed
//! together.

use ackclock_cc::Controller;

use crate::error::Error;
use crate::run::{parse, run};
use crate::table::{Column, Table};

/// Name and one line for each metric that has a name of its own.
pub const REGISTRY: &[(&str, &str)] = &[
    ("goodput_bps", "goodput of all flows together"),
    ("jain", "Jain's index of the flows' goodput: 1/n (one has all) to 1 (equal)"),
    ("bytes_acked", "payload acknowledged, all flows"),
    ("sent_packets", "packets that the senders sent, all flows"),
    ("retransmissions", "of these, retransmissions"),
    ("retransmission_share", "retransmissions by packets sent"),
    ("rtos", "retransmission timeouts, all flows"),
    ("recoveries", "episodes of fast recovery, all flows"),
    ("mean_rtt_s", "mean over the flows of their mean RTT"),
    ("min_rtt_s", "least RTT of all"),
    ("completion_s", "time until the last flow completed; none unless all did"),
    ("dropped_queue", "packets refused or dropped by queues, all links"),
    ("dropped_loss", "packets lost by loss models, all links"),
    ("marked", "packets marked, all links"),
    ("queue_mean_packets", "mean queue of the link whose queue is longest on average"),
    ("queue_max_packets", "largest queue of all links"),
    ("fetches", "fetches begun"),
    ("fetches_done", "fetches completed"),
    ("fetch_mean_s", "mean latency of the completed fetches"),
    ("fetch_p50_s", "their median latency"),
    ("fetch_p95_s", "their 95th percentile"),
    ("fetch_p99_s", "their 99th percentile"),
];

/// How a column becomes a number. Values that do not exist (NaN) are left out.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Reduce {
    Count,
    Sum,
    Mean,
    Std,
    Min,
    Max,
    /// Between order statistics, linearly.
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

/// Standard deviation of a sample (n - 1).
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
    /// Index into the registry.
    Named(usize),
    /// "table.column.reduction".
    Column { table: String, column: String, reduce: Reduce },
}

/// The metrics that a sweep keeps.
#[derive(Clone, Debug, Default)]
pub struct Metrics(Vec<Metric>);

impl Metrics {
    /// Read names: of the registry, or "table.column.reduction".
    pub fn parse(names: &[String]) -> Result<Metrics, Error> {
        let tables = empty_tables()?;
        names.iter().map(|name| metric(name, &tables)).collect::<Result<_, _>>().map(Metrics)
    }

    /// Whether a table is needed for any of them.
    pub fn need(&self, name: &str) -> bool {
        self.0.iter().any(|metric| match metric {
            Metric::Named(_) => NEEDED.contains(&name),
            Metric::Column { table, .. } => table == name,
        })
    }

    /// The value of each metric; NaN where a run has none.
    pub fn of(&self, tables: &[Table]) -> Vec<f64> {
        let mut known: Option<Vec<f64>> = None;
        let value = |metric: &Metric| match metric {
            Metric::Named(at) => known.get_or_insert_with(|| named(tables))[*at],
            Metric::Column { table, column, reduce } => {
                let found = tables.iter().find(|t| t.name == table).and_then(|t| t.column(column));
                found.map_or(f64::NAN, |column| reduce.of(numbers(column)))
            }
        };
        self.0.iter().map(value).collect()
    }
}

/// Check the names of tables and of columns that are to be kept.
pub fn check_tables(wanted: &[(String, Option<Vec<String>>)]) -> Result<(), Error> {
    let tables = empty_tables()?;
    for (name, columns) in wanted {
        let table = table_called(&tables, name, "tables")?;
        for column in columns.iter().flatten() {
            column_called(table, column, "tables")?;
        }
    }
    Ok(())
}

fn metric(name: &str, tables: &[Table]) -> Result<Metric, Error> {
    if let Some(at) = REGISTRY.iter().position(|(known, _)| *known == name) {
        return Ok(Metric::Named(at));
    }
    let parts: Vec<&str> = name.split('.').collect();
    let [table, column, reduction] = parts[..] else {
        let known: Vec<&str> = REGISTRY.iter().map(|(name, _)| *name).collect();
        let allowed = format!("{}, or table.column.reduction such as flows.rtos.max", known.join(", "));
        return Err(Error::value("metrics", format_args!("{name:?}"), allowed));
    };
    let found = table_called(tables, table, "metrics")?;
    if matches!(column_called(found, column, "metrics")?, Column::Text { .. }) {
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

fn table_called<'a>(tables: &'a [Table], name: &str, place: &str) -> Result<&'a Table, Error> {
    tables.iter().find(|t| t.name == name).ok_or_else(|| {
        let known: Vec<&str> = tables.iter().map(|t| t.name).collect();
        Error::value(place, format_args!("the table {name:?}"), known.join(", "))
    })
}

fn column_called<'a>(table: &'a Table, name: &str, place: &str) -> Result<&'a Column, Error> {
    table.column(name).ok_or_else(|| {
        let known: Vec<&str> = table.columns.iter().map(|(name, _)| *name).collect();
        Error::value(place, format_args!("the column {name:?} of {}", table.name), known.join(", "))
    })
}

/// The tables of a run in which nothing happens: what tables and columns there are, each controller's own variables included.
fn empty_tables() -> Result<Vec<Table>, Error> {
    const NOTHING: &str = r#"{"duration_ns": 2, "network": {"topology": "chain", "bottleneck": {"delay_ns": 1000}},
        "flows": [{"profile": "linux-6", "congestion_control": "cubic", "workload": {"kind": "transfer", "bytes": 1}}]}"#;
    let mut tables = run(&parse(NOTHING)?, 0)?.tables;
    for table in tables.iter_mut().filter(|table| table.name == "controllers") {
        for name in Controller::known_vars() {
            table.fill(name, 0);
        }
    }
    Ok(tables)
}

/// The tables that [`named`] reads.
const NEEDED: [&str; 3] = ["flows", "links", "fetches"];

/// Every metric of the registry, in its order.
fn named(tables: &[Table]) -> Vec<f64> {
    let flows = Rows(tables, "flows");
    let links = Rows(tables, "links");
    let fetches = Rows(tables, "fetches");
    let goodput: Vec<f64> = flows.values("goodput_bps").collect();
    let squares = goodput.iter().fold(0.0, |sum, x| sum + x * x);
    let total = Reduce::Sum.of(goodput.iter().copied());
    let sent = flows.sum("sent_packets");
    let completions: Vec<f64> = flows.values("completion_s").collect();
    let latencies: Vec<f64> = fetches.values("total_s").filter(|v| !v.is_nan()).collect();
    let latency = |reduce: Reduce| reduce.of(latencies.iter().copied());
    let share = |part: f64, whole: f64| if whole == 0.0 { f64::NAN } else { part / whole };
    vec![
        total,
        share(total * total, goodput.len() as f64 * squares),
        flows.sum("bytes_acked"),
        sent,
        flows.sum("retransmissions"),
        share(flows.sum("retransmissions"), sent),
        flows.sum("rtos"),
        flows.sum("recoveries"),
        Reduce::Mean.of(flows.values("mean_rtt_s")),
        Reduce::Min.of(flows.values("min_rtt_s")),
        if completions.iter().any(|c| c.is_nan()) {
            f64::NAN
        } else {
            Reduce::Max.of(completions.into_iter())
        },
        links.sum("dropped_queue"),
        links.sum("dropped_loss"),
        links.sum("marked"),
        Reduce::Max.of(links.values("mean_packets")),
        Reduce::Max.of(links.values("max_packets")),
        Reduce::Count.of(fetches.values("idx")),
        latencies.len() as f64,
        latency(Reduce::Mean),
        latency(Reduce::Quantile(0.5)),
        latency(Reduce::Quantile(0.95)),
        latency(Reduce::Quantile(0.99)),
    ]
}

/// One of the tables.
struct Rows<'a>(&'a [Table], &'static str);

impl<'a> Rows<'a> {
    fn values(&self, column: &str) -> Box<dyn Iterator<Item = f64> + 'a> {
        let table = self.0.iter().find(|t| t.name == self.1);
        match table.and_then(|t| t.column(column)) {
            Some(column) => numbers(column),
            None => Box::new(std::iter::empty()),
        }
    }

    fn sum(&self, column: &str) -> f64 {
        Reduce::Sum.of(self.values(column))
    }
}

fn numbers(column: &Column) -> Box<dyn Iterator<Item = f64> + '_> {
    match column {
        Column::F8(v) => Box::new(v.iter().copied()),
        Column::I8(v) => Box::new(v.iter().map(|&x| x as f64)),
        Column::U4(v) => Box::new(v.iter().map(|&x| f64::from(x))),
        Column::U1(v) | Column::Bool(v) => Box::new(v.iter().map(|&x| f64::from(x))),
        Column::Text { .. } => Box::new(std::iter::empty()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: &str = r#"{"duration_ns": 2000000000, "network": {"topology": "chain",
        "bottleneck": {"rate_bps": 10000000, "delay_ns": 5000000, "loss": {"kind": "bernoulli", "p": 0.01},
                       "queue": {"kind": "drop-tail", "limit_packets": 20}}},
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
        assert_eq!(value(&tables, "goodput_bps"), goodput.iter().sum::<f64>());
        let sent: i64 = flows.integers("sent_packets").iter().sum();
        let again: i64 = flows.integers("retransmissions").iter().sum();
        assert!(again > 0);
        assert_eq!(value(&tables, "retransmission_share"), again as f64 / sent as f64);
        let jain = goodput.iter().sum::<f64>().powi(2) / (4.0 * goodput.iter().map(|x| x * x).sum::<f64>());
        assert!((value(&tables, "jain") - jain).abs() < 1e-12);
        assert!(value(&tables, "completion_s").is_nan(), "bulk flows never complete");
        assert_eq!(value(&tables, "fetches_done"), value(&tables, "fetches.done.sum"));
        assert_eq!(value(&tables, "fetch_p50_s"), value(&tables, "fetches.total_s.median"));
        assert_eq!(named(&tables).len(), REGISTRY.len());
    }

    #[test]
    fn metrics_need_no_other_tables_than_they_say() {
        let mut names: Vec<String> = REGISTRY.iter().map(|(name, _)| name.to_string()).collect();
        names.push("recoveries.idx.count".to_string());
        let scenario = parse(SMALL).expect("reads");
        let all = run(&scenario, 3).expect("runs").tables;
        for some in [&names[..], &names[..1], &names[names.len() - 1..], &[]] {
            let metrics = Metrics::parse(some).expect("metrics");
            let few = crate::run::run_for(&scenario, 3, |name| metrics.need(name)).expect("runs").tables;
            assert!(few.len() < all.len() && few.iter().all(|table| all.contains(table)));
            let bits = |tables| metrics.of(tables).into_iter().map(f64::to_bits).collect::<Vec<_>>();
            assert_eq!(bits(&few), bits(&all));
        }
        for table in &all {
            let one = crate::run::run_for(&scenario, 3, |name| name == table.name).expect("runs").tables;
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
