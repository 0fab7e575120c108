"""BBR version 1 as a controller in Python, identical to the built-in `bbr`, integer for integer."""

from __future__ import annotations

from ackclock.controllers import Controller

MASK = 2**64 - 1
NEVER = MASK
BW_SCALE = 24
BW_UNIT = 1 << BW_SCALE
UNIT = 256
HIGH_GAIN = UNIT * 2885 // 1000 + 1
DRAIN_GAIN = UNIT * 1000 // 2885
CWND_GAIN = UNIT * 2
CYCLE = (UNIT * 5 // 4, UNIT * 3 // 4, UNIT, UNIT, UNIT, UNIT, UNIT, UNIT)
MIN_CWND = 4
SLOW = 150_000
RECOVERY = ("Recovery", "Loss")
STARTUP, DRAIN, PROBE_BW, PROBE_RTT = range(4)


def mix(z: int) -> int:
    """Return the value after splitmix64's finaliser."""
    z = (z + 0x9E3779B97F4A7C15) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


class Stream:
    """Random numbers of the engine: xoshiro256++."""

    def __init__(self, seed: int, name: str) -> None:
        h = 0xCBF29CE484222325
        for byte in name.encode():
            h = ((h ^ byte) * 0x100000001B3) & MASK
        state = mix(h ^ mix(seed))
        self.s = [mix((state + i * 0x9E3779B97F4A7C15) & MASK) for i in range(4)]

    def next(self) -> int:
        def rotated(x: int, k: int) -> int:
            return ((x << k) | (x >> (64 - k))) & MASK

        s = self.s
        answer = (rotated((s[0] + s[3]) & MASK, 23) + s[0]) & MASK
        t = (s[1] << 17) & MASK
        s[2] ^= s[0]
        s[3] ^= s[1]
        s[1] ^= s[2]
        s[0] ^= s[3]
        s[2] ^= t
        s[3] = rotated(s[3], 45)
        return answer

    def below(self, n: int) -> int:
        return (self.next() * n) >> 64


class RunningMax:
    """Best three samples for a windowed maximum (Kathleen Nichols' filter)."""

    def __init__(self) -> None:
        self.s = [(0, 0)] * 3

    @property
    def value(self) -> int:
        return self.s[0][1]

    def update(self, window: int, t: int, v: int) -> None:
        s, sample = self.s, (t, v)
        if v >= s[0][1] or t - s[2][0] > window:
            self.s = [sample] * 3
            return
        if v >= s[1][1]:
            s[1] = s[2] = sample
        elif v >= s[2][1]:
            s[2] = sample
        age = t - s[0][0]
        if age > window:
            s[:] = [s[1], s[2], sample]
            if t - s[0][0] > window:
                s[:] = [s[1], s[2], sample]
        elif s[1][0] == s[0][0] and age > window // 4:
            s[1] = s[2] = sample
        elif s[2][0] == s[1][0] and age > window // 2:
            s[2] = sample


def ns(seconds: float) -> int:
    return round(seconds * 1e9)


def us(seconds: float) -> int:
    return ns(seconds) // 1000


def pacing_rate(bw: int, gain: int, smss: int) -> int:
    """Return the pacing rate in bytes/s, 1 % below the model's rate."""
    return (bw * smss * gain // UNIT) * 990_000 >> BW_SCALE


class Bbr(Controller):
    """BBRv1, identical to the engine's."""

    wants_rate = wants_pacing = wants_own_start = True
    buffer_windows = 3
    slow_packets = SLOW
    variables = ("mode",)

    def __init__(self) -> None:
        self.mode = STARTUP
        self.pacing_gain = self.cwnd_gain = HIGH_GAIN
        self.delivered = self.next_delivered = self.rounds = 0
        self.round_start = False
        self.bw = RunningMax()
        self.lt_used = self.lt_sampling = False
        self.lt_bw = self.lt_rounds = self.lt_since_ms = self.lt_delivered = self.lt_lost = 0
        self.lost = self.delivered_time = 0
        self.epoch_stamp = self.epoch_acked = self.extra_idx = self.extra_rounds = 0
        self.extra = [0, 0]
        self.full_bw = self.full_count = 0
        self.full = False
        self.min_rtt, self.min_rtt_stamp = NEVER, 0
        self.looking = self.round_done = False
        self.done: int | None = None
        self.cycle_idx = self.cycle_stamp = 0
        self.conserves = False
        self.before = "Open"
        self.prior_cwnd = 0
        self.idle_restart = self.has_seen_rtt = False
        self.smss = 0
        self.stream = Stream(0, "bbr")

    def seed(self, seed):
        self.stream = Stream(seed, "bbr")

    def on_start(self, window, now, srtt, smss):
        if srtt > 0:
            self.min_rtt = us(srtt)
            self.has_seen_rtt = True
        self.min_rtt_stamp = self.epoch_stamp = ns(now)
        self.smss = smss
        self.pace_from_rtt(window, srtt)

    def on_congestion_event(self, window, in_flight):
        self.save_cwnd(int(window.cwnd))
        return window.ssthresh

    def on_state(self, window, state, now):
        if state == "Loss":
            self.before = "Loss"
            self.full_bw = 0
            self.round_start = True
            self.sample_long_term(losses=True, app_limited=False)

    def on_totals(self, delivered, lost, delivered_time):
        self.delivered, self.lost, self.delivered_time = delivered, lost, ns(delivered_time)

    def undo_cwnd(self, window):
        self.full_bw = self.full_count = 0
        self.lt_reset()
        return window.cwnd

    def on_tx_start(self, window, now, idle, snd_nxt):
        if idle == 0:
            return
        self.idle_restart = True
        self.epoch_stamp, self.epoch_acked = ns(now), 0
        if self.mode == PROBE_BW:
            self.pace_at(window, UNIT)
        elif self.mode == PROBE_RTT:
            self.check_probe_rtt_done(window, ns(now))

    def holds_back(self):
        return self.looking

    def on_control(self, window, ack):
        self.count(ack)
        self.smss = ack.smss
        self.update_bw(ack)
        self.update_extra(window, ack)
        self.update_cycle(window, ack)
        self.check_full(ack.rate)
        self.check_drain(window, ack)
        self.update_min_rtt(window, ack)
        self.set_gains()
        self.set_pacing(window, ack)
        self.set_cwnd(window, ack)

    # ---- the model ----

    def count(self, ack):
        self.delivered += ack.delivered
        self.lost += ack.newly_lost
        if ack.rate:
            self.delivered, self.lost = ack.rate.total_delivered, ack.rate.total_lost
        if ack.delivered > 0:
            self.delivered_time = ns(ack.now)

    def update_bw(self, ack):
        self.round_start = False
        rate = ack.rate
        if not rate or rate.interval == 0:
            return
        if rate.prior_delivered >= self.next_delivered:
            self.next_delivered = self.delivered
            self.rounds += 1
            self.round_start = True
            self.conserves = False
        self.sample_long_term(losses=ack.newly_lost > 0, app_limited=rate.is_app_limited)
        bw = rate.delivered * BW_UNIT // max(us(rate.interval), 1)
        if not rate.is_app_limited or bw >= self.bw.value:
            self.bw.update(10, self.rounds, bw)

    def bw_in_use(self):
        return self.lt_bw if self.lt_used else self.bw.value

    def update_extra(self, window, ack):
        if ack.delivered == 0 or not ack.rate or ack.rate.interval == 0:
            return
        if self.round_start:
            self.extra_rounds += 1
            if self.extra_rounds >= 5:
                self.extra_rounds = 0
                self.extra_idx ^= 1
                self.extra[self.extra_idx] = 0
        now = ns(ack.now)
        due = self.bw_in_use() * (max(now - self.epoch_stamp, 0) // 1000) >> BW_SCALE
        if self.epoch_acked <= due or self.epoch_acked + ack.delivered >= 1 << 20:
            self.epoch_acked, self.epoch_stamp, due = 0, now, 0
        self.epoch_acked = min(self.epoch_acked + ack.delivered, 0xFFFFF)
        extra = min(self.epoch_acked - due, int(window.cwnd))
        self.extra[self.extra_idx] = max(self.extra[self.extra_idx], extra)

    # ---- policers ----

    def lt_begin(self):
        self.lt_since_ms = self.delivered_time // 1_000_000
        self.lt_delivered, self.lt_lost, self.lt_rounds = self.delivered, self.lost, 0

    def lt_reset(self):
        self.lt_used, self.lt_bw, self.lt_sampling = False, 0, False
        self.lt_begin()

    def lt_end(self, bw):
        before = self.lt_bw
        if before > 0:
            diff = abs(bw - before)
            if diff * UNIT <= UNIT // 8 * before or pacing_rate(diff, UNIT, self.smss) <= 500:
                self.lt_bw, self.lt_used, self.lt_rounds = (bw + before) // 2, True, 0
                return
        self.lt_bw = bw
        self.lt_begin()

    def sample_long_term(self, *, losses, app_limited):
        if self.lt_used:
            if self.mode == PROBE_BW and self.round_start:
                self.lt_rounds += 1
                if self.lt_rounds >= 48:
                    self.lt_reset()
                    self.enter_probe_bw()
            return
        if not self.lt_sampling:
            if not losses:
                return
            self.lt_begin()
            self.lt_sampling = True
        if app_limited:
            self.lt_reset()
            return
        self.lt_rounds += self.round_start
        if self.lt_rounds < 4:
            return
        if self.lt_rounds > 16:
            self.lt_reset()
            return
        if not losses:
            return
        lost, delivered = self.lost - self.lt_lost, self.delivered - self.lt_delivered
        if delivered == 0 or lost * UNIT < 50 * delivered:
            return
        ms = max(self.delivered_time // 1_000_000 - self.lt_since_ms, 0)
        if ms < 1:
            return
        if ms >= (2**32 - 1) // 1000:
            self.lt_reset()
            return
        self.lt_end(delivered * BW_UNIT // (ms * 1000))

    # ---- modes ----

    def set_gains(self):
        cycle = UNIT if self.lt_used else CYCLE[self.cycle_idx]
        self.pacing_gain, self.cwnd_gain = (
            (HIGH_GAIN, HIGH_GAIN),
            (DRAIN_GAIN, HIGH_GAIN),
            (cycle, CWND_GAIN),
            (UNIT, UNIT),
        )[self.mode]

    def advance_cycle(self):
        self.cycle_idx = (self.cycle_idx + 1) % 8
        self.cycle_stamp = self.delivered_time

    def enter_probe_bw(self):
        self.mode = PROBE_BW
        self.cycle_idx = 7 - self.stream.below(7)
        self.advance_cycle()

    def update_cycle(self, window, ack):
        if self.mode != PROBE_BW:
            return
        full_length = max(self.delivered_time - self.cycle_stamp, 0) // 1000 > self.min_rtt
        bw, gain = self.bw.value, self.pacing_gain
        if gain == UNIT:
            ends = full_length
        else:
            in_net = self.in_net(ack.prior_in_flight, window, ack)
            if gain > UNIT:
                ends = full_length and (ack.newly_lost > 0 or in_net >= self.inflight(bw, gain, window))
            else:
                ends = full_length or in_net <= self.inflight(bw, UNIT, window)
        if ends:
            self.advance_cycle()

    def check_full(self, rate):
        if self.full or not self.round_start or not rate or rate.is_app_limited:
            return
        if self.bw.value >= self.full_bw * 5 // 4:
            self.full_bw, self.full_count = self.bw.value, 0
            return
        self.full_count += 1
        self.full = self.full_count >= 3

    def check_drain(self, window, ack):
        if self.mode == STARTUP and self.full:
            self.mode = DRAIN
            window.ssthresh = self.inflight(self.bw.value, UNIT, window)
        if self.mode == DRAIN and self.in_net(ack.in_flight, window, ack) <= self.inflight(self.bw.value, UNIT, window):
            self.enter_probe_bw()

    def update_min_rtt(self, window, ack):
        now = ns(ack.now)
        expired = now // 1_000_000 > self.min_rtt_stamp // 1_000_000 + 10_000
        if ack.rtt is not None:
            delayed = ack.rate is not None and ack.rate.is_ack_delayed
            if us(ack.rtt) < self.min_rtt or (expired and not delayed):
                self.min_rtt, self.min_rtt_stamp = us(ack.rtt), now
        if expired and not self.idle_restart and self.mode != PROBE_RTT:
            self.mode = PROBE_RTT
            self.save_cwnd(int(window.cwnd))
            self.done = None
        self.looking = self.mode == PROBE_RTT
        if self.looking:
            self.probe_rtt(window, ack, now)
        if ack.rate and ack.rate.delivered > 0:
            self.idle_restart = False

    def probe_rtt(self, window, ack, now):
        if self.done is None:
            if ack.in_flight <= MIN_CWND:
                self.done = now // 1_000_000 + 200
                self.round_done = False
                self.next_delivered = self.delivered
            return
        self.round_done |= self.round_start
        if self.round_done:
            self.check_probe_rtt_done(window, now)

    def check_probe_rtt_done(self, window, now):
        if self.done is None or now // 1_000_000 <= self.done:
            return
        self.min_rtt_stamp = now
        window.cwnd = max(int(window.cwnd), self.prior_cwnd)
        if self.full:
            self.enter_probe_bw()
        else:
            self.mode = STARTUP

    # ---- window and rate ----

    def save_cwnd(self, cwnd):
        free = self.before not in RECOVERY and self.mode != PROBE_RTT
        self.prior_cwnd = cwnd if free else max(self.prior_cwnd, cwnd)

    def burst(self, window):
        rate = MASK if window.pacing_rate == float("inf") else int(window.pacing_rate)
        least = 1 if rate < SLOW else 2
        return min(max(min(rate >> 10, 65_535 - 320) // max(self.smss, 1), least), 0x7F)

    def bdp(self, bw, gain):
        if self.min_rtt == NEVER:
            return 10
        return -(-(bw * self.min_rtt * gain // UNIT) // BW_UNIT)

    def with_budget(self, cwnd, window):
        cwnd = (cwnd + 3 * self.burst(window) + 1) & ~1
        return cwnd + 2 * (self.mode == PROBE_BW and self.cycle_idx == 0)

    def inflight(self, bw, gain, window):
        return self.with_budget(self.bdp(bw, gain), window)

    def in_net(self, in_flight, window, ack):
        coming = self.burst(window) if self.pacing_gain > UNIT else 0
        gone = self.bw_in_use() * us(ack.departs_in) >> BW_SCALE
        return max(in_flight + coming - gone, 0)

    def pace_from_rtt(self, window, srtt):
        over = max(us(srtt), 1) if srtt > 0 else 1000
        window.pacing_rate = pacing_rate(max(int(window.cwnd), 1) * BW_UNIT // over, HIGH_GAIN, self.smss)

    def set_pacing(self, window, ack):
        if not self.has_seen_rtt and ack.srtt > 0:
            self.has_seen_rtt = True
            self.pace_from_rtt(window, ack.srtt)
        self.pace_at(window, self.pacing_gain)

    def pace_at(self, window, gain):
        rate = pacing_rate(self.bw_in_use(), gain, self.smss)
        if self.full or rate > window.pacing_rate:
            window.pacing_rate = rate

    def recovers(self, cwnd, ack):
        """Apply losses and states to cwnd; return whether cwnd is then final."""
        before, self.before = self.before, ack.ca_state
        cwnd = max(cwnd - ack.newly_lost, 1)
        if ack.ca_state == "Recovery" and before != "Recovery":
            self.conserves = True
            self.next_delivered = self.delivered
            cwnd = ack.in_flight + ack.delivered
        elif before in RECOVERY and ack.ca_state not in RECOVERY:
            cwnd = max(cwnd, self.prior_cwnd)
            self.conserves = False
        if self.conserves:
            cwnd = max(cwnd, ack.in_flight + ack.delivered)
        return cwnd, self.conserves

    def set_cwnd(self, window, ack):
        cwnd = int(window.cwnd)
        if ack.delivered > 0:
            cwnd, settled = self.recovers(cwnd, ack)
            if not settled:
                target = self.bdp(self.bw_in_use(), self.cwnd_gain)
                if self.full:
                    target += min(max(self.extra), self.bw_in_use() * 100_000 >> BW_SCALE)
                target = self.with_budget(target, window)
                if self.full:
                    cwnd = min(cwnd + ack.delivered, target)
                elif cwnd < target or self.delivered < 10:
                    cwnd += ack.delivered
                cwnd = max(cwnd, MIN_CWND)
        cwnd = min(cwnd, window.cwnd_clamp)
        window.cwnd = min(cwnd, MIN_CWND) if self.mode == PROBE_RTT else cwnd
