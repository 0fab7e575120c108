//! TCP captures for Python: tables of connections and of one connection's packets.

use std::cell::Cell;
use std::fs::File;

use ackclock_capture::counts::KINDS;
use ackclock_capture::{Connection, Connections, Error};
use ackclock_sim::{Column, Table};
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::guarded;
use crate::interrupt::{wall_clock, Interrupt, PyStop};
use crate::tables::PyTables;

/// Read a capture: `connections` with one row per direction of each connection, `packets` of the requested
/// connection, and statistics on the file. `progress` is called from time to time with the number of bytes read.
#[pyfunction]
#[pyo3(signature = (path, connection = None, most_packets = 10_000_000, progress = None, stop = None))]
pub fn read_capture<'py>(
    py: Python<'py>,
    path: &str,
    connection: Option<usize>,
    most_packets: usize,
    progress: Option<Py<PyAny>>,
    stop: Option<&Bound<'py, PyStop>>,
) -> PyResult<Bound<'py, PyDict>> {
    let interrupt = Interrupt::new(stop.map(Bound::get));
    let found = guarded(py, || {
        let asked = Cell::new(wall_clock());
        let tell = |py: Python<'_>, bytes: u64| match &progress {
            Some(call) => call.call1(py, (bytes,)).map(drop),
            None => Ok(()),
        };
        ackclock_capture::read(
            || File::open(path),
            connection,
            most_packets,
            |bytes| !interrupt.comes(&asked, |py| tell(py, bytes)),
        )
    })?;
    interrupt.check()?;
    let found = found.map_err(|error| match error {
        Error::Io(error) => PyOSError::new_err((error.raw_os_error(), error.to_string())),
        error => PyValueError::new_err(error.to_string()),
    })?;
    let dict = PyDict::new(py);
    for (name, number) in [
        ("frames", found.frames),
        ("segments", found.segments),
        ("fragments", found.fragments),
        ("short", found.short),
        ("unknown_links", found.unknown_links),
        ("backwards", found.backwards),
        ("without_time", found.without_time),
        ("dropped", found.dropped),
        ("copies", found.copies),
        ("unknown_link", found.unknown_link.map_or(0, u64::from)),
        ("back_ns", found.back_ns.unsigned_abs()),
    ] {
        dict.set_item(name, number)?;
    }
    dict.set_item("cut", found.cut)?;
    dict.set_item("without_copies", found.without_copies)?;
    dict.set_item("begins_ns", found.all.iter().map(|one| one.span_ns.0).min())?;
    let begins_ns = found.all.iter().map(|one| one.span_ns.0).min().unwrap_or(0);
    let made = vec![connections(&found.all, begins_ns), packets(&found, begins_ns)];
    dict.set_item("tables", PyTables::of(made))?;
    Ok(dict)
}

fn seconds(ns: i64) -> f64 {
    ns as f64 / 1e9
}

/// Return NaN for a missing value.
fn maybe(value: Option<f64>) -> f64 {
    value.unwrap_or(f64::NAN)
}

/// Table with one row per direction of each connection.
fn connections(all: &[Connection], begins_ns: i64) -> Table {
    let of = |value: &dyn Fn(&Connection, usize) -> f64| {
        Column::F8(all.iter().flat_map(|one| [value(one, 0), value(one, 1)]).collect())
    };
    let count = |value: &dyn Fn(&Connection, usize) -> i64| {
        Column::I8(all.iter().flat_map(|one| [value(one, 0), value(one, 1)]).collect())
    };
    let text = |value: &dyn Fn(&Connection, usize) -> String| {
        let mut names = Vec::new();
        let mut known = std::collections::BTreeMap::new();
        let codes = all.iter().flat_map(|one| [value(one, 0), value(one, 1)]);
        let codes = codes.map(|name| {
            *known.entry(name).or_insert_with_key(|name| {
                names.push(name.clone());
                names.len() as u32 - 1
            })
        });
        let codes: Vec<u32> = codes.collect();
        Column::Text { codes, names }
    };
    let flag = |value: &dyn Fn(&Connection, usize) -> bool| {
        Column::Bool(all.iter().flat_map(|one| [value(one, 0).into(), value(one, 1).into()]).collect())
    };
    let number: Vec<u32> = (0..all.len() as u32).flat_map(|at| [at, at]).collect();
    let rtt = |ns: fn(&ackclock_capture::counts::Counts) -> f64| {
        move |one: &Connection, way: usize| {
            let counts = &one.ways[way].counts;
            if counts.rtts == 0 {
                f64::NAN
            } else {
                ns(counts) / 1e9
            }
        }
    };
    let columns = vec![
        ("connection", Column::U4(number)),
        ("interface", Column::U4(all.iter().flat_map(|one| [one.interface; 2]).collect())),
        ("way", text(&|_, way| ["client", "server"][way].to_string())),
        ("from_address", text(&|one, way| [one.client, one.server][way].ip.to_string())),
        ("from_port", count(&|one, way| [one.client, one.server][way].port.into())),
        ("to_address", text(&|one, way| [one.server, one.client][way].ip.to_string())),
        ("to_port", count(&|one, way| [one.server, one.client][way].port.into())),
        ("captured_at", text(&|one, _| one.place().name().to_string())),
        ("begins_s", of(&|one, _| seconds(one.span_ns.0 - begins_ns))),
        ("ends_s", of(&|one, _| seconds(one.span_ns.1 - begins_ns))),
        ("first_data_s", of(&|one, w| maybe(one.ways[w].counts.data_ns.map(|d| seconds(d.0 - begins_ns))))),
        ("last_data_s", of(&|one, w| maybe(one.ways[w].counts.data_ns.map(|d| seconds(d.1 - begins_ns))))),
        ("handshake_rtt_s", of(&|one, _| maybe(one.handshake_rtt_ns().map(seconds)))),
        ("reset", flag(&|one, _| one.reset)),
        ("packets", count(&|one, w| one.ways[w].counts.packets as i64)),
        ("segments", count(&|one, w| one.ways[w].counts.segments as i64)),
        ("bytes", count(&|one, w| one.ways[w].counts.bytes)),
        ("retransmitted", count(&|one, w| one.ways[w].counts.retransmitted as i64)),
        ("retransmitted_bytes", count(&|one, w| one.ways[w].counts.retransmitted_bytes)),
        ("spurious", count(&|one, w| one.ways[w].counts.spurious as i64)),
        (
            "lost",
            count(&|one, w| {
                let counts = &one.ways[w].counts;
                counts.retransmitted.saturating_sub(counts.spurious) as i64
            }),
        ),
        ("reordered", count(&|one, w| one.ways[w].counts.reordered as i64)),
        ("duplicated", count(&|one, w| one.ways[w].counts.duplicated as i64)),
        ("unseen_bytes", count(&|one, w| one.ways[w].counts.unseen_bytes)),
        ("duplicate_acks", count(&|one, w| one.ways[w].counts.duplicate_acks as i64)),
        ("window_full", count(&|one, w| one.ways[w].counts.window_full as i64)),
        ("zero_windows", count(&|one, w| one.ways[w].counts.zero_windows as i64)),
        ("least_window", of(&|one, w| maybe(one.ways[w].counts.window.map(|v| v.0 as f64)))),
        ("most_window", of(&|one, w| maybe(one.ways[w].counts.window.map(|v| v.1 as f64)))),
        ("most_in_flight", count(&|one, w| one.ways[w].counts.most_in_flight)),
        ("first_flight", count(&|one, w| one.ways[w].counts.first_flight)),
        ("rtt_samples", count(&|one, w| one.ways[w].counts.rtts as i64)),
        ("rtt_min_s", of(&rtt(|counts| counts.rtt_min_ns as f64))),
        ("rtt_mean_s", of(&rtt(|counts| counts.rtt_sum_ns as f64 / counts.rtts as f64))),
        ("rtt_max_s", of(&rtt(|counts| counts.rtt_max_ns as f64))),
        ("ce", count(&|one, w| one.ways[w].counts.ce as i64)),
        ("ece", count(&|one, w| one.ways[w].counts.ece as i64)),
        ("syn_again", count(&|one, w| one.ways[w].counts.syn_again as i64)),
        ("syn_ect", flag(&|one, w| one.ways[w].syn_ect)),
        ("mss", of(&|one, w| maybe(one.ways[w].mss.map(f64::from)))),
        ("wscale", of(&|one, w| maybe(one.ways[w].wscale.map(f64::from)))),
        ("scale_known", flag(&|one, _| one.is_scaled())),
        ("sack", flag(&|one, _| one.ways.iter().all(|way| way.sack_permitted))),
        ("timestamps", flag(&|one, w| one.ways[w].timestamps)),
    ];
    Table::of("connections", columns)
}

/// Table of the packets of one connection, with their SACK blocks as separate rows.
fn packets(found: &Connections, begins_ns: i64) -> Table {
    let rows = &found.rows;
    let columns = vec![
        ("t_s", Column::F8(rows.iter().map(|row| seconds(row.t_ns - begins_ns)).collect())),
        ("from_server", Column::Bool(rows.iter().map(|row| row.from_server.into()).collect())),
        (
            "kind",
            Column::Text {
                codes: rows.iter().map(|row| row.kind as u32).collect(),
                names: KINDS.map(String::from).to_vec(),
            },
        ),
        ("seq", Column::I8(rows.iter().map(|row| row.seq).collect())),
        ("length", Column::U4(rows.iter().map(|row| row.length).collect())),
        ("ack", Column::F8(rows.iter().map(|row| maybe(row.ack.map(|ack| ack as f64))).collect())),
        ("window", Column::I8(rows.iter().map(|row| row.window as i64).collect())),
        ("flags", Column::U4(rows.iter().map(|row| row.flags.into()).collect())),
        ("timestamp", Column::U4(rows.iter().map(|row| row.timestamps.0).collect())),
        ("echo", Column::U4(rows.iter().map(|row| row.timestamps.1).collect())),
        ("ip_id", Column::U4(rows.iter().map(|row| row.ip_id.into()).collect())),
    ];
    Table::of("packets", columns)
}
