//! Every cell of the ACK-by-ACK tables of RFC 6937 and RFC 9937, and numbers derived from the same setting.
//!
//! | test | source |
//! |---|---|
//! | `rfc6937_one_loss` | RFC 6937 §3.1, first table; ssthresh 11 and RecoverFS 22 as its authors computed it |
//! | `rfc6937_prr_pipe_row_is_misprinted` | the same, its PRR pipe row as printed |
//! | `rfc6937_fifteen_losses` | RFC 6937 §3.1, second table |
//! | `rfc6937_with_the_ssthresh_of_its_text` | RFC 6937 §3.1 with ssthresh 10 instead; own computation |
//! | `rfc9937_one_loss` | RFC 9937 Figure 1; PRR at ACKs 19 and 20 as its §6.2 gives |
//! | `rfc9937_figure_1_differs_from_the_algorithm` | the same, as printed |
//! | `rfc9937_fifteen_losses` | RFC 9937 Figure 2 |
//! | `recovery_time_pipe_and_bursts` | own computation in the setting of RFC 6937 §3.1; "40 segments" and "more than 3 RTTs" there and in the IETF-84 slides of Mathis, Dukkipati and Cheng |
//! | `rebuilding_pipe_after_a_heavy_loss` | own computation; RFC 6937 §3.1, RFC 9937 §8 describe it |
//!
//! A dot in the tables means that nothing is sent.

use ackclock_cc::ideal::{run, IdealConfig, IdealTable};
use ackclock_cc::recovery::REGISTRY;
use ackclock_cc::Rule;

fn table(rule: &str, lost: std::ops::Range<u32>, ssthresh: u32, recover_fs: Option<u32>) -> IdealTable {
    let rule = Rule::by_name(rule).expect("registered");
    let config = IdealConfig::new(rule, 20);
    run(&IdealConfig { lost: lost.collect(), ssthresh: Some(ssthresh), recover_fs, ..config })
}

fn numbers(row: &str) -> Vec<u32> {
    row.split_whitespace().map(|cell| cell.parse().expect("number")).collect()
}

/// Check the first columns of the table: `cwnd`, `pipe` and `sent`.
fn check(name: &str, table: &IdealTable, acks: &[u32], cwnd: Option<&str>, pipe: &str, sent: &str) {
    let rows = &table.rows[..acks.len()];
    assert_eq!(rows.iter().map(|r| r.ack).collect::<Vec<_>>(), acks, "{name}: ack#");
    if let Some(cwnd) = cwnd {
        assert_eq!(rows.iter().map(|r| r.cwnd).collect::<Vec<_>>(), numbers(cwnd), "{name}: cwnd");
    }
    assert_eq!(rows.iter().map(|r| r.pipe).collect::<Vec<_>>(), numbers(pipe), "{name}: pipe");
    assert_eq!(sent_row(table, acks.len()), sent.split_whitespace().collect::<Vec<_>>(), "{name}: sent");
}

fn sent_row(table: &IdealTable, n: usize) -> Vec<&str> {
    table.rows[..n].iter().map(|r| r.sent.as_str()).collect()
}

fn acks(range: std::ops::RangeInclusive<u32>) -> Vec<u32> {
    range.collect()
}

/// Return the ACKs of one episode on which segments were sent, from the entering ACK on.
fn sends_at(table: &IdealTable) -> Vec<u32> {
    let active = |r: &&ackclock_cc::ideal::IdealRow| r.sent != "·" && (3..22).contains(&r.ack);
    table.rows.iter().filter(active).map(|r| r.ack).collect()
}

const RFC6937_PRR_PIPE: &str = "19 19 18 18 17 17 16 16 15 15 14 14 13 13 12 12 11 10 10";

#[test]
fn rfc6937_one_loss() {
    let columns = acks(1..=19);
    check(
        "RFC 6675",
        &table("rfc6675", 0..1, 11, None),
        &columns,
        Some("20 20 11 11 11 11 11 11 11 11 11 11 11 11 11 11 11 11 11"),
        "19 19 18 18 17 16 15 14 13 12 11 10 10 10 10 10 10 10 10",
        "N  N  R  ·  ·  ·  ·  ·  ·  ·  ·  N  N  N  N  N  N  N  N",
    );
    for ssthresh in [10, 11] {
        check(
            "rate halving",
            &table("rate-halving", 0..1, ssthresh, None),
            &columns,
            Some("20 20 19 18 18 17 17 16 16 15 15 14 14 13 13 12 12 11 11"),
            "19 19 18 18 17 17 16 16 15 15 14 14 13 13 12 12 11 11 10",
            "N  N  R  ·  N  ·  N  ·  N  ·  N  ·  N  ·  N  ·  N  ·  N",
        );
    }
    for rule in ["prr-ub", "prr-crb", "prr-ssrb"] {
        let t = table(rule, 0..1, 11, Some(22));
        let sent = "N  N  R  ·  N  ·  N  ·  N  ·  N  ·  N  ·  N  ·  ·  N  N";
        check(rule, &t, &columns, None, RFC6937_PRR_PIPE, sent);
        let rb: Vec<&str> = t.rows[..19].iter().map(|r| r.rb.as_str()).collect();
        assert!(rb[..17].iter().all(|s| s.is_empty()), "{rule}: {rb:?}");
        assert_eq!(rb[17..], ["s", "s"], "{rule}");
        // RFC 6937's RecoverFS includes limited-transmit segments, so no override is needed
        assert_eq!(t, table(rule, 0..1, 11, None));
    }
}

#[test]
fn rfc6937_prr_pipe_row_is_misprinted() {
    let printed = numbers("19 19 18 18 18 17 17 16 16 15 15 14 14 13 13 12 12 11 10");
    let mut shifted = numbers(RFC6937_PRR_PIPE);
    shifted.insert(4, 18);
    shifted.pop();
    assert_eq!(printed, shifted, "a second 18 has pushed the row one column to the right");
}

#[test]
fn rfc6937_fifteen_losses() {
    let columns = acks(15..=19);
    let bulk = |rule| table(rule, 0..15, 11, None);
    let (cwnd, pipe) = (Some("20 20 11 11 11"), "19 19 4 10 10");
    check("RFC 6675", &bulk("rfc6675"), &columns, cwnd, pipe, "N N 7R R R");
    let (cwnd, pipe) = (Some("20 20 5 5 5"), "19 19 4 4 4");
    check("rate halving", &bulk("rate-halving"), &columns, cwnd, pipe, "N N R R R");
    check("PRR-CRB", &bulk("prr-crb"), &columns, cwnd, pipe, "N N R R R");
    check("PRR-SSRB", &bulk("prr-ssrb"), &columns, None, "19 19 4 5 6", "N N 2R 2R 2R");
    let rb = |rule| -> Vec<String> { bulk(rule).rows[2..5].iter().map(|r| r.rb.clone()).collect() };
    assert_eq!(rb("prr-crb"), ["b", "b", "b"]);
    assert_eq!(rb("prr-ssrb"), ["bd", "d", "d"]);
}

#[test]
fn rfc6937_with_the_ssthresh_of_its_text() {
    // The text gives ssthresh = 10, which RFC 6675 §5 step 4.2 requires (limited-transmit segments not counted).
    let t = table("rfc6675", 0..1, 10, None);
    assert_eq!(sends_at(&t)[1], 13, "first new segment at ACK 13, not 12");
    assert_eq!(t.rows.iter().map(|r| r.pipe).min(), Some(9));
    check(
        "RFC 6675, 15 losses",
        &table("rfc6675", 0..15, 10, None),
        &acks(15..=19),
        Some("20 20 10 10 10"),
        "19 19 4 9 9",
        "N N 6R R R",
    );
    let not_counted = [3, 5, 7, 9, 11, 13, 15, 17, 20, 21];
    assert_eq!(sends_at(&table("prr-ssrb", 0..1, 10, Some(20))), not_counted);
    assert_eq!(sends_at(&table("prr-linux-3.2", 0..1, 10, None)), not_counted);
    assert_eq!(sends_at(&table("prr-linux-6", 0..1, 10, None)), not_counted);
    let literal = [3, 5, 7, 9, 11, 14, 16, 19, 20, 21];
    for rule in ["prr-ub", "prr-crb", "prr-ssrb"] {
        assert_eq!(sends_at(&table(rule, 0..1, 10, Some(22))), literal, "{rule}");
    }
}

const RFC9937_PRR_SENT: &str = "N N R · N · N · N · N · N · N · N · · N N N";

#[test]
fn rfc9937_one_loss() {
    let columns = acks(1..=22);
    check(
        "RFC 6675",
        &table("rfc6675", 0..1, 10, None),
        &columns,
        Some("20 20 10 10 10 10 10 10 10 10 10 10 10 10 10 10 10 10 10 10 10 10"),
        "19 19 18 18 17 16 15 14 13 12 11 10  9  9  9  9  9  9  9  9  9  9",
        "N  N  R  ·  ·  ·  ·  ·  ·  ·  ·  ·  N  N  N  N  N  N  N  N  N  N",
    );
    for rule in ["prr-rfc9937", "prr-linux-6"] {
        let t = table(rule, 0..1, 10, None);
        check(
            rule,
            &t,
            &columns,
            Some("20 20 19 18 18 17 17 16 16 15 15 14 14 13 13 12 12 11 10 10 10 10"),
            "19 19 18 18 17 17 16 16 15 15 14 14 13 13 12 12 11 11 10  9  9  9",
            RFC9937_PRR_SENT,
        );
        assert!(t.rows[21].trigger_is_retransmission && t.summary.completed);
        assert_eq!(t.summary.cwnd_after_exit, 10);
    }
}

/// §6.2 tests inflight > ssthresh, so nothing is sent at ACK 19 (both are 10). The figure continues the proportional
/// part for one more ACK, as >= would.
#[test]
fn rfc9937_figure_1_differs_from_the_algorithm() {
    let printed_cwnd = numbers("20 20 19 18 18 17 17 16 16 15 15 14 14 13 13 12 12 11 11 10 10 10");
    let printed_pipe = numbers("19 19 18 18 17 17 16 16 15 15 14 14 13 13 12 12 11 11 10 10  9  9");
    let printed_sent: Vec<&str> = "N N R · N · N · N · N · N · N · N · N · N N".split_whitespace().collect();
    let t = table("prr-rfc9937", 0..1, 10, None);
    let differing = |differs: &dyn Fn(usize) -> bool| -> Vec<u32> {
        (0..22).filter(|&i| differs(i)).map(|i| t.rows[i].ack).collect()
    };
    assert_eq!(differing(&|i| t.rows[i].sent != printed_sent[i]), [19, 20]);
    assert_eq!(differing(&|i| t.rows[i].cwnd != printed_cwnd[i]), [19]);
    assert_eq!(differing(&|i| t.rows[i].pipe != printed_pipe[i]), [20]);
    let new = |sent: &[&str]| sent.iter().filter(|s| **s == "N").count();
    assert_eq!(new(&sent_row(&t, 22)), new(&printed_sent), "the totals agree");
}

#[test]
fn rfc9937_fifteen_losses() {
    let columns = acks(15..=19);
    let (cwnd, pipe) = (Some("20 20 10 10 10"), "19 19 4 9 9");
    check("RFC 6675", &table("rfc6675", 0..15, 10, None), &columns, cwnd, pipe, "N N 6R R R");
    let (cwnd, pipe) = (Some("20 20 5 5 5"), "19 19 4 4 4");
    check("PRR", &table("prr-rfc9937", 0..15, 10, None), &columns, cwnd, pipe, "N N R R R");
}

/// Gap between two segments, in twentieths (W 20) or hundredths (W 100) of an RTT.
fn ticks(rtts: f64, window: u32) -> u32 {
    (rtts * f64::from(window)).round() as u32
}

#[test]
fn recovery_time_pipe_and_bursts() {
    let episode = |rule: &str, window, lost: u32, more_data| {
        let config = IdealConfig::new(Rule::by_name(rule).expect("registered"), window);
        run(&IdealConfig { lost: (0..lost).collect(), more_data, ..config }).summary
    };
    // Columns: rule; for W 20 with 15 losses: recovery RTTs and ticks, pipe at exit, cwnd after exit, maximum sent on
    // one ACK; for W 100 with 90 losses: recovery RTTs and ticks, segments sent on the entering ACK; for W 20 with 1
    // loss and no new data: cwnd before exit. Whole RTTs are the expected values; ticks follow from the even spacing of
    // the window.
    let expected = [
        ("rfc6675", (2, 40, 9, 10, 6), (2, 200, 41), 10),
        ("freebsd-4", (2, 40, 9, 10, 6), (2, 200, 41), 10),
        ("prr-ub", (2, 40, 9, 10, 6), (2, 200, 41), 10),
        ("rate-halving", (4, 79, 4, 5, 1), (10, 999, 1), 2),
        ("prr-crb", (4, 79, 4, 5, 1), (10, 999, 1), 10),
        ("prr-ssrb", (2, 42, 9, 10, 2), (3, 304, 2), 10),
        ("prr-linux-3.2", (2, 42, 9, 10, 2), (3, 304, 2), 10),
        ("prr-rfc9937", (3, 59, 9, 10, 2), (4, 402, 1), 10),
        ("prr-linux-6", (3, 59, 9, 10, 2), (4, 402, 1), 10),
    ];
    assert_eq!(expected.len(), REGISTRY.len());
    for (rule, heavy, heavier, idle) in expected {
        let s = episode(rule, 20, 15, true);
        assert!(s.completed, "{rule}");
        let rtts = (s.recovery_rtts.round() as u32, ticks(s.recovery_rtts, 20));
        assert_eq!((rtts.0, rtts.1, s.pipe_at_exit, s.cwnd_after_exit, s.max_burst), heavy, "{rule}");
        let s = episode(rule, 100, 90, true);
        assert!(s.completed, "{rule}");
        let rtts = (s.recovery_rtts.round() as u32, ticks(s.recovery_rtts, 100));
        assert_eq!((rtts.0, rtts.1, s.burst_at_entry), heavier, "{rule}");
        let s = episode(rule, 20, 1, false);
        assert!(s.completed, "{rule}");
        assert_eq!(s.cwnd_before_exit, idle, "{rule}");
    }
}

#[test]
fn rebuilding_pipe_after_a_heavy_loss() {
    let ssrb = table("prr-ssrb", 0..15, 10, None);
    assert_eq!(sent_row(&ssrb, 9)[2..], ["2R", "2R", "2R", "2R", "2R", "R", "R"]);
    assert_eq!(ssrb.rows[2..7].iter().map(|r| r.pipe).collect::<Vec<_>>(), [4, 5, 6, 7, 8]);
    for rule in ["prr-rfc9937", "prr-linux-6"] {
        let t = table(rule, 0..15, 10, None);
        let first_safe = t.rows.iter().position(|r| r.snd_una > 0).expect("the first retransmission arrives");
        assert_eq!(sent_row(&t, first_safe)[2..], ["R"; 5], "{rule}");
        assert_eq!(sent_row(&t, first_safe + 2)[first_safe..], ["2R"; 2], "{rule}");
    }
}
