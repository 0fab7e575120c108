//! COBALT, CAKE's queue management: CoDel for flows that respond to its signals, and BLUE for flows that do not.
//!
//! Source: Linux 7.3 `net/sched/sch_cake.c` (`cobalt_should_drop`, `cobalt_queue_full`, `cobalt_queue_empty`); T.
//! Høiland-Jørgensen, D. Täht, J. Morton, "Piece of CAKE", 2018.
//!
//! | variable | meaning |
//! |---|---|
//! | `count`, `drop_next`, `dropping` | CoDel's; `count` falls by one for each signal that was due but not needed |
//! | `p_drop` | BLUE's probability, in 2^-32: up by 1/256 at an overflow, down by 1/4096 when the queue is found empty |
//! | `blue_timer` | time of the last change of `p_drop`: at most one change per target |
//! | `rec_inv_sqrt` | 1 / sqrt(count) in 2^-32: exact below a count of 16, one step of Newton's method from the last value above |

use ackclock_core::{Span, Stream, Time};

/// Parameters shared by all queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CobaltParams {
    pub target: Span,
    pub interval: Span,
    /// Transmission time of a full packet; zero without a shaper.
    pub mtu_time: Span,
}

impl CobaltParams {
    /// Return the parameters for an expected round-trip time, behind a shaper that takes `mtu_time` per full packet
    /// (Linux `cake_set_rate`).
    pub(crate) fn new(rtt: Span, mtu_time: Span) -> CobaltParams {
        let wanted = rtt / 20;
        let target = wanted.max(Span(mtu_time.0 * 3 / 2));
        let interval = Span(rtt.0 + target.0 - wanted.0).max(target * 2);
        CobaltParams { target, interval, mtu_time }
    }
}

/// COBALT's verdict on a packet at departure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Pass,
    Mark,
    Drop,
}

/// State for one queue.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cobalt {
    count: u32,
    drop_next: Time,
    blue_timer: Time,
    p_drop: u32,
    dropping: bool,
    /// Initially zero, so that the first standing queue is signalled at once rather than after an interval.
    rec_inv_sqrt: u32,
}

impl Cobalt {
    /// Record that the queue lost a packet because the memory limit of all queues was exceeded.
    pub(crate) fn overflowed(&mut self, now: Time, params: &CobaltParams) {
        if now - self.blue_timer > params.target {
            self.p_drop = self.p_drop.saturating_add(UP);
            self.blue_timer = now;
        }
        self.dropping = true;
        self.drop_next = now;
        self.count = self.count.max(1);
    }

    /// Record that the queue was empty when its turn came.
    pub(crate) fn found_empty(&mut self, now: Time, params: &CobaltParams) {
        if self.p_drop > 0 && now - self.blue_timer > params.target {
            self.p_drop = self.p_drop.saturating_sub(DOWN);
            self.blue_timer = now;
        }
        self.dropping = false;
        if self.count > 0 && now >= self.drop_next {
            self.count -= 1;
            self.signal_after(self.count, params);
        }
    }

    /// Whether the state is that of a new queue.
    pub(crate) fn is_at_rest(&self, now: Time) -> bool {
        self.p_drop == 0 && self.count == 0 && now >= self.drop_next
    }

    /// Verdict on a packet with this sojourn time.
    pub(crate) fn judge(
        &mut self,
        now: Time,
        params: &CobaltParams,
        sojourn: Span,
        can_be_marked: bool,
        stream: &mut Stream,
    ) -> Verdict {
        let over_target = sojourn > params.target && sojourn > params.mtu_time * 4;
        let mut count = self.count;
        let mut late = now > self.drop_next;
        let mut next_due = count > 0 && now >= self.drop_next;
        if over_target {
            if !self.dropping {
                self.dropping = true;
                self.drop_next = now + self.step(params);
            }
            count = count.max(1);
        } else {
            self.dropping = false;
        }
        let mut verdict = Verdict::Pass;
        if next_due && self.dropping {
            verdict = if can_be_marked { Verdict::Mark } else { Verdict::Drop };
            count = count.saturating_add(1);
            self.signal_after(count, params);
            late = now > self.drop_next;
        } else {
            while next_due {
                count -= 1;
                self.signal_after(count, params);
                late = now > self.drop_next;
                next_due = count > 0 && now >= self.drop_next;
            }
        }
        if self.p_drop > 0 && verdict != Verdict::Drop && ((stream.next_u64() >> 32) as u32) < self.p_drop {
            verdict = Verdict::Drop;
        }
        self.count = count;
        if count == 0 {
            self.drop_next = now + params.interval;
        } else if late && verdict != Verdict::Drop {
            self.drop_next = now;
        }
        verdict
    }

    /// Apply CoDel's control law: the next signal is due interval / sqrt(count) after the last due time.
    fn signal_after(&mut self, count: u32, params: &CobaltParams) {
        self.rec_inv_sqrt = match count {
            0..16 => INVERSE_ROOTS[count as usize],
            _ => {
                let x = self.rec_inv_sqrt as u64;
                let rest = (3u64 << 32).wrapping_sub((count as u64).wrapping_mul((x * x) >> 32));
                ((rest >> 2).wrapping_mul(x) >> 31) as u32
            }
        };
        self.drop_next += self.step(params);
    }

    /// Return interval / sqrt(count). The interval is truncated to 32 bits, as in Linux.
    fn step(&self, params: &CobaltParams) -> Span {
        Span((params.interval.0 as u32 as u64 * self.rec_inv_sqrt as u64) >> 32)
    }
}

/// 1 / sqrt(n) in 2^-32, with Linux's last digit where it differs from correct rounding.
const INVERSE_ROOTS: [u32; 16] = [
    u32::MAX,
    u32::MAX,
    3_037_000_500,
    2_479_700_525,
    2_147_483_647,
    1_920_767_767,
    1_753_413_056,
    1_623_345_051,
    1_518_500_250,
    1_431_655_765,
    1_358_187_914,
    1_294_981_364,
    1_239_850_263,
    1_191_209_601,
    1_147_878_294,
    1_108_955_788,
];

/// Linux p_inc and p_dec, in 2^-32.
const UP: u32 = 1 << 24;
const DOWN: u32 = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Span = Span::from_ms(100);
    const MS: u64 = 1_000_000;

    fn judge(cobalt: &mut Cobalt, ms: u64, sojourn_ms: u64) -> Verdict {
        let params = CobaltParams::new(RTT, Span::ZERO);
        cobalt.judge(Time(ms * MS), &params, Span::from_ms(sojourn_ms), false, &mut Stream::new(1, "test"))
    }

    #[test]
    fn target_and_interval_follow_the_rtt_and_slow_links() {
        let params = CobaltParams::new(RTT, Span::ZERO);
        assert_eq!((params.target, params.interval), (Span::from_ms(5), RTT));
        // 1 Mbit/s: a 1514-byte packet takes 12.112 ms
        let slow = CobaltParams::new(RTT, Span::from_us(12_112));
        assert_eq!((slow.target, slow.interval), (Span::from_us(18_168), Span::from_us(113_168)));
    }

    /// In a standing queue the first signal is immediate; the others follow at shrinking intervals, as in CoDel.
    #[test]
    fn it_signals_as_codel_does() {
        let mut cobalt = Cobalt::default();
        assert_eq!(judge(&mut cobalt, 999, 1), Verdict::Pass); // a queue starts short
        let drops: Vec<u64> =
            (1000..2000).filter(|&ms| judge(&mut cobalt, ms, 20) == Verdict::Drop).collect();
        let gaps: Vec<u64> = drops.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert_eq!(drops[0], 1001);
        // 100 / sqrt(2), 100 / sqrt(3), ... ms, to within 1 ms
        for (gap, n) in gaps.iter().zip(2..) {
            assert!(gap.abs_diff((100.0 / f64::sqrt(n as f64)) as u64) <= 1, "{gaps:?}");
        }
    }

    #[test]
    fn it_forgets_step_by_step() {
        let mut cobalt = Cobalt::default();
        for ms in 1000..3000 {
            judge(&mut cobalt, ms, 20);
        }
        let count = cobalt.count;
        assert!(count > 20);
        assert_eq!(judge(&mut cobalt, 3000, 1), Verdict::Pass);
        for ms in 3000..3100 {
            judge(&mut cobalt, ms, 1);
        }
        assert!(cobalt.count < count && cobalt.count > 0, "{} of {count}", cobalt.count);
        assert!(!cobalt.is_at_rest(Time(3100 * MS)));
        for ms in 3100..20_000 {
            judge(&mut cobalt, ms, 1);
        }
        assert_eq!(cobalt.count, 0);
    }

    #[test]
    fn blue_rises_at_overflows_and_falls_when_idle() {
        let (mut cobalt, params) = (Cobalt::default(), CobaltParams::new(RTT, Span::ZERO));
        for i in 1..=10 {
            cobalt.overflowed(Time(i * 10 * MS), &params);
            cobalt.overflowed(Time(i * 10 * MS + MS), &params); // too soon after the last change
        }
        assert_eq!(cobalt.p_drop, 10 * UP);
        let mut stream = Stream::new(1, "test");
        let n = 50_000;
        let drops = (0..n).filter(|&i| {
            cobalt.judge(Time(200 * MS + i), &params, Span::ZERO, true, &mut stream) == Verdict::Drop
        });
        let share = drops.count() as f64 / n as f64;
        assert!((share * 25.6 - 1.0).abs() < 0.05, "{share}");
        (0..159).for_each(|i| cobalt.found_empty(Time((300 + 10 * i) * MS), &params));
        assert_eq!(cobalt.p_drop, DOWN);
        cobalt.found_empty(Time(9_000 * MS), &params);
        assert_eq!(cobalt.p_drop, 0);
    }
}
