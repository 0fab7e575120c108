//! Invariants of the recovery rules over random loss patterns on the ideal path, and PRR's byte form as an oracle.
//!
//! | test | statement | source |
//! |---|---|---|
//! | `i1_delivered_data_is_forward_progress` | the sum of DeliveredData equals the segments that arrived; lost ACKs only merge terms | RFC 6937 §2 |
//! | `i2_crb_never_sends_more_than_was_delivered` | prr_out <= prr_delivered | RFC 6937 §4 |
//! | `i3_no_ack_sends_more_than_its_bound` | banked or delivered, + 1 (SafeACK: + 1 only there) | RFC 6937 §3, RFC 9937 §6.2 |
//! | `i4_above_ssthresh_prr_out_follows_the_proportion` | prr_out = max(before, ceil(prr_delivered ssthresh / RecoverFS)) | algebra |
//! | `i5_small_losses_make_all_bounds_equal` | losses <= FlightSize - segments SACKed before entry - ssthresh: UB, CRB and SSRB send the same | RFC 6937 §3.1, algebra |
//! | `i5_does_not_hold_for_the_recover_fs_of_rfc6937` | the same with the SACKed segments counted fails | own computation |
//! | `i6_rfc9937_is_conservative_before_the_first_safe_ack` | prr_out <= prr_delivered there | algebra |
//! | `i7_exit_windows` | ssthresh; rate halving min(ssthresh, pipe + 3) | RFC 6675 §5, RFC 9937 §6.4, Linux 2.6 |
//! | `i8_rate_halving_sends_one_per_ack_and_never_grows` | both, in recovery | Linux 2.6 |
//! | `byte_form_sends_on_the_same_acks` | bytes, rounding up to whole segments | RFC 6937 §3, RFC 9937 §6.2 |
//! | `byte_form_of_whole_segments_lags_by_one_at_most` | bytes, whole segments only | the same |

use ackclock_cc::ideal::{run, IdealConfig, IdealRow, IdealTable};
use ackclock_cc::recovery::{Prr, PrrBound, PrrParams, RecoverFs, REGISTRY};
use ackclock_cc::{RecoveryAck, RecoveryEntry, RecoveryRule, Rule};
use ackclock_core::trace::{Branch, CaState};
use proptest::prelude::*;

/// W, target window, segments lost, ACKs lost.
#[derive(Clone, Debug)]
struct Pattern {
    window: u32,
    ssthresh: u32,
    lost: Vec<u32>,
    lost_acks: Vec<u32>,
    more_data: bool,
}

impl Pattern {
    fn run(&self, rule: Rule) -> IdealTable {
        run(&IdealConfig {
            lost: self.lost.clone(),
            lost_acks: self.lost_acks.clone(),
            ssthresh: Some(self.ssthresh),
            more_data: self.more_data,
            max_acks: 2_000,
            ..IdealConfig::new(rule, self.window)
        })
    }

    fn named(&self, rule: &str) -> IdealTable {
        self.run(Rule::by_name(rule).expect("registered"))
    }
}

/// Windows of 4 to 40 segments, with runs of losses and single losses in the window and in the first new segments, and
/// some lost ACKs.
fn patterns() -> impl Strategy<Value = Pattern> {
    (4..=40_u32, 30..=70_u32, any::<bool>()).prop_flat_map(|(window, beta_percent, more_data)| {
        let ssthresh = (window * beta_percent / 100).max(2);
        let burst = (0..window, 0..=window);
        let singles = prop::collection::vec(0..window + 4, 0..6);
        let acks = prop::collection::vec(0..3 * window, 0..4);
        (burst, singles, acks).prop_map(move |((from, n), mut lost, lost_acks)| {
            lost.extend(from..(from + n).min(window));
            lost.sort_unstable();
            lost.dedup();
            Pattern { window, ssthresh, lost, lost_acks, more_data }
        })
    })
}

fn config() -> ProptestConfig {
    ProptestConfig {
        cases: ProptestConfig::default().cases.min(10_000),
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

fn recovering(table: &IdealTable) -> impl Iterator<Item = &IdealRow> {
    table.rows.iter().filter(|r| r.state == CaState::Recovery)
}

fn sent(row: &IdealRow) -> u32 {
    row.sent_new + row.sent_retransmissions
}

/// prr_delivered - prr_out before sending.
fn banked(row: &IdealRow) -> u32 {
    row.rule.prr_delivered.saturating_sub(row.rule.prr_out)
}

/// Return (ack#, sent) for each of RFC 6937's bounds.
fn bound_sends(p: &Pattern) -> [Vec<(u32, String)>; 3] {
    ["prr-ub", "prr-crb", "prr-ssrb"]
        .map(|rule| p.named(rule).rows.into_iter().map(|r| (r.ack, r.sent)).collect())
}

#[test]
fn i5_does_not_hold_for_the_recover_fs_of_rfc6937() {
    // 11 losses <= RecoverFS 22 - ssthresh 11, but pipe at entry is 22 - 3 - 11 = 8 and only one segment was delivered
    let p =
        Pattern { window: 20, ssthresh: 11, lost: (0..11).collect(), lost_acks: Vec::new(), more_data: true };
    let [ub, crb, ssrb] = bound_sends(&p).map(|sends| sends[2].clone());
    assert_eq!([ub.1, crb.1, ssrb.1], ["3R", "R", "2R"]);
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn i1_delivered_data_is_forward_progress(p in patterns(), rule in 0..REGISTRY.len()) {
        let t = p.named(REGISTRY[rule].0);
        // every ACK delivered: one segment per ACK, none twice
        let all_acks = Pattern { lost_acks: Vec::new(), ..p.clone() }.named(REGISTRY[rule].0);
        prop_assert!(all_acks.rows.iter().all(|r| r.delivered <= 1));
        let delivered = |t: &IdealTable| t.rows.iter().map(|r| r.delivered).sum::<u32>();
        if let Some(last) = t.rows.last() {
            prop_assert!(delivered(&t) >= last.snd_una);
        }
        for t in [&t, &all_acks] {
            if p.more_data || !t.summary.completed {
                continue;
            }
            prop_assert_eq!(delivered(t), p.window, "all data arrived, each segment counted once");
        }
    }

    #[test]
    fn i2_crb_never_sends_more_than_was_delivered(p in patterns()) {
        for row in recovering(&p.named("prr-crb")) {
            prop_assert!(row.rule.prr_out + sent(row) <= row.rule.prr_delivered, "{:?}", row);
        }
    }

    #[test]
    fn i3_no_ack_sends_more_than_its_bound(p in patterns()) {
        for rule in ["prr-ssrb", "prr-linux-3.2", "prr-rfc9937", "prr-linux-6"] {
            let t = p.named(rule);
            let mut una = 0;
            for row in &t.rows {
                let safe_ack = row.snd_una > una && row.newly_lost == 0;
                una = row.snd_una;
                if row.state != CaState::Recovery || row.rule.branch == Branch::Hold {
                    continue;
                }
                let slow_start = rule == "prr-ssrb" || rule == "prr-linux-3.2" || safe_ack;
                let forced = row.rule.branch == Branch::Forced;
                let limit = banked(row).max(row.delivered) + u32::from(slow_start || forced);
                prop_assert!(sent(row) <= limit, "{rule}: {:?}", row);
            }
        }
    }

    #[test]
    fn i4_above_ssthresh_prr_out_follows_the_proportion(p in patterns()) {
        let p = Pattern { more_data: true, ..p };
        for rule in ["prr-ub", "prr-crb", "prr-ssrb", "prr-rfc9937", "prr-linux-3.2", "prr-linux-6"] {
            for row in recovering(&p.named(rule)).filter(|r| r.rule.branch == Branch::Proportional) {
                let v = row.rule;
                let due = (v.prr_delivered * row.ssthresh).div_ceil(v.recover_fs);
                prop_assert_eq!(v.prr_out + sent(row), v.prr_out.max(due), "{}: {:?}", rule, row);
            }
        }
    }

    /// pipe = outstanding - losses - prr_delivered + prr_out, so ssthresh - pipe <= prr_delivered - prr_out.
    /// Outstanding is RFC 9937's RecoverFS. RFC 6937's also includes segments SACKed before entry, which are never in
    /// prr_delivered.
    #[test]
    fn i5_small_losses_make_all_bounds_equal(p in patterns()) {
        let p = Pattern { more_data: true, lost_acks: Vec::new(), ..p };
        let Some(outstanding) = recovering(&p.named("prr-rfc9937")).next().map(|r| r.rule.recover_fs) else {
            return Ok(());
        };
        if p.lost.len() as u32 + p.ssthresh <= outstanding {
            let sends = bound_sends(&p);
            prop_assert_eq!(&sends[0], &sends[1]);
            prop_assert_eq!(&sends[0], &sends[2]);
        }
    }

    #[test]
    fn i6_rfc9937_is_conservative_before_the_first_safe_ack(p in patterns()) {
        for rule in ["prr-rfc9937", "prr-linux-6"] {
            let t = p.named(rule);
            let mut una = None;
            for row in recovering(&t) {
                let safe_ack = una.is_some_and(|una| row.snd_una > una) && row.newly_lost == 0;
                una = Some(row.snd_una);
                if safe_ack {
                    break;
                }
                let forced = u32::from(row.rule.branch == Branch::Forced);
                prop_assert!(row.rule.prr_out + sent(row) <= row.rule.prr_delivered + forced, "{rule}: {:?}", row);
            }
        }
    }

    #[test]
    fn i7_exit_windows(p in patterns(), rule in 0..REGISTRY.len()) {
        let name = REGISTRY[rule].0;
        let s = p.named(name).summary;
        if !s.completed {
            return Ok(());
        }
        match name {
            "freebsd-4" => prop_assert_eq!(s.cwnd_after_exit, p.ssthresh.min(s.pipe_at_exit + 1)),
            "rate-halving" => prop_assert!(s.cwnd_after_exit <= p.ssthresh.min(s.pipe_at_exit + 3)),
            "prr-ub" | "prr-crb" | "prr-ssrb" => prop_assert_eq!(s.cwnd_after_exit, s.cwnd_before_exit),
            _ => prop_assert_eq!(s.cwnd_after_exit, p.ssthresh),
        }
    }

    #[test]
    fn i8_rate_halving_sends_one_per_ack_and_never_grows(p in patterns()) {
        let mut cwnd = p.window;
        for row in recovering(&p.named("rate-halving")) {
            prop_assert!(sent(row) <= 1, "{:?}", row);
            prop_assert!(row.cwnd <= cwnd, "{:?}", row);
            cwnd = row.cwnd;
        }
    }
}

/// Outcome of one ACK, as decided by the path: whether snd_una advances, and how many further segments are detected as lost.
type Step = (bool, u32);

fn steps() -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec((any::<bool>(), prop_oneof![4 => Just(0_u32), 1 => 1..5_u32]), 1..80)
}

/// Straightforward implementation of PRR in bytes, from RFC 9937 §6.2 and RFC 6937 §3, used as an oracle.
struct BytePrr {
    params: PrrParams,
    smss: u64,
    ssthresh: u64,
    recover_fs: u64,
    prr_delivered: u64,
    prr_out: u64,
}

impl BytePrr {
    /// Return the number of bytes that may be sent on this ACK of one segment; negative if the sender is ahead.
    fn on_ack(&mut self, pipe: u64, safe_ack: bool) -> i64 {
        let delivered = self.smss;
        self.prr_delivered += delivered;
        let out = self.prr_out as i64;
        let mut snd_cnt = if pipe > self.ssthresh {
            let product = u128::from(self.prr_delivered) * u128::from(self.ssthresh);
            product.div_ceil(u128::from(self.recover_fs)) as i64 - out
        } else {
            let banked = self.prr_delivered as i64 - out;
            let smss = self.smss as i64;
            let limit = match self.params.bound {
                PrrBound::Ub => i64::MAX,
                PrrBound::Crb => banked,
                PrrBound::Ssrb => banked.max(delivered as i64) + smss,
                PrrBound::SafeAck => banked.max(delivered as i64) + if safe_ack { smss } else { 0 },
            };
            ((self.ssthresh - pipe) as i64).min(limit)
        };
        let forces = self.params == PrrParams::RFC9937 || self.params == PrrParams::LINUX_6;
        if forces && out == 0 && snd_cnt == 0 {
            snd_cnt = self.smss as i64;
        }
        snd_cnt
    }
}

/// Return the segments sent per ACK by the segment form and by the byte form, each with its own pipe.
fn both_forms(
    params: PrrParams,
    (window, ssthresh, smss): (u32, u32, u64),
    steps: &[Step],
    whole_segments_only: bool,
) -> Vec<(u32, u32)> {
    let mut prr = Prr::new(params);
    prr.enter(&RecoveryEntry {
        cwnd: window,
        ssthresh,
        flight_size: window,
        sacked: 1,
        newly_sacked: 1,
        newly_acked: 0,
        min_cwnd: ssthresh,
    });
    let recover_fs = u64::from(prr.vars().recover_fs) * smss;
    let mut bytes = BytePrr {
        params,
        smss,
        ssthresh: u64::from(ssthresh) * smss,
        recover_fs,
        prr_delivered: 0,
        prr_out: 0,
    };
    let (mut pipe, mut byte_pipe) = (window, u64::from(window) * smss);
    let mut out = Vec::new();
    for &(una_advanced, newly_lost) in steps {
        let gone = newly_lost.min(pipe.saturating_sub(1)).min((byte_pipe / smss).saturating_sub(1) as u32);
        if pipe == 0 || byte_pipe == 0 {
            break;
        }
        pipe -= 1 + gone;
        byte_pipe -= u64::from(1 + gone) * smss;
        let ack = RecoveryAck {
            delivered: 1,
            pipe,
            cwnd: 0,
            ssthresh,
            una_advanced,
            newly_lost: gone,
            entering: out.is_empty(),
            progress: true,
        };
        let n = prr.on_ack(&ack) - pipe;
        for _ in 0..n {
            prr.on_sent(1);
        }
        pipe += n;
        let mut allowed = bytes.on_ack(byte_pipe, una_advanced && gone == 0);
        let least = if whole_segments_only { smss as i64 } else { 1 };
        let mut m = 0;
        while allowed >= least {
            allowed -= smss as i64;
            bytes.prr_out += smss;
            byte_pipe += smss;
            m += 1;
        }
        out.push((n, m));
    }
    out
}

const VARIANTS: [PrrParams; 5] =
    [PrrParams::UB, PrrParams::CRB, PrrParams::SSRB, PrrParams::RFC9937, PrrParams::LINUX_6];

proptest! {
    #![proptest_config(config())]

    #[test]
    fn byte_form_sends_on_the_same_acks(
        window in 4..60_u32, percent in 30..90_u32, smss in 1..3_000_u64, steps in steps(), variant in 0..5_usize,
    ) {
        let ssthresh = (window * percent / 100).max(2);
        for (n, m) in both_forms(VARIANTS[variant], (window, ssthresh, smss), &steps, false) {
            prop_assert_eq!(n, m);
        }
    }

    /// While pipe is above ssthresh, where fractions arise, a sender that waits for a whole segment is never ahead and
    /// at most one segment behind.
    #[test]
    fn byte_form_of_whole_segments_lags_by_one_at_most(
        window in 20..60_u32, percent in 30..90_u32, smss in 1..3_000_u64, n in 1..60_usize,
    ) {
        let ssthresh = window * percent / 100;
        let acks_above = (window - ssthresh - 1) as usize;
        let steps = vec![(false, 0); n.min(acks_above)];
        let params = PrrParams { recover_fs: RecoverFs::PriorCwnd, ..PrrParams::SSRB };
        let (mut segments, mut whole) = (0, 0);
        for (n, m) in both_forms(params, (window, ssthresh, smss), &steps, true) {
            segments += n;
            whole += m;
            prop_assert!(whole <= segments && segments <= whole + 1, "{segments} {whole}");
        }
    }
}
