//! Random hook sequences drawn from the contract's table of permitted successors. Calls that a sender would not make in
//! its current state are skipped, and every event that has been started is completed.

use super::*;
use crate::controller::{Hook, HOOKS};

/// Number of calls in a sequence.
const CALLS: u32 = 400;
/// Weight of an ACK among the events that may start.
const ACKS: u32 = 12;

/// State of one event between its hooks.
#[derive(Default)]
struct Event {
    before: Option<Hook>,
    ack: Option<AckSample>,
    /// The event is a retransmission timeout.
    timer: bool,
    /// State that must still be reported to the controller by `on_state`.
    owed: Option<CaState>,
    /// Result of the last `on_ecn` or `reduces`.
    yes: bool,
    /// The target window has been requested; `min_cwnd` or `on_rto` must follow.
    asked: bool,
}

impl<C: CongestionControl> Path<C> {
    /// Call hooks in orders that the table allows, starting with connection setup.
    pub(super) fn run_drawn(mut self) -> Result<(), Violation> {
        let (mut event, mut started) = (Event::default(), false);
        for step in 0..CALLS {
            self.at.1 = step;
            let mut due: Vec<Hook> = HOOKS.iter().filter(|row| row.is_event).map(|row| row.hook).collect();
            due.retain(|&hook| hook.may_follow(event.before) && self.is_due(hook, &event, started));
            // an event may end once the reduction and the state change that it started are complete
            let may_end = event.before.is_some() && started && event.owed.is_none() && !event.asked;
            let begins = event.before.is_none() && due.contains(&Hook::on_sample);
            let more = if begins { ACKS } else { u32::from(may_end || due.is_empty()) };
            let drawn = self.stream.below(due.len() as u64 + u64::from(more)) as usize;
            let hook = match (due.get(drawn), begins) {
                (Some(&hook), _) => hook,
                (None, true) => Hook::on_sample,
                (None, false) => {
                    event = Event::default();
                    continue;
                }
            };
            self.play(hook, &mut event)?;
            started |= hook == Hook::on_start;
            event.before = Some(hook);
            if hook == Hook::on_start {
                event = Event::default();
            }
        }
        Ok(())
    }

    /// Whether a sender in this state would call `hook`.
    fn is_due(&self, hook: Hook, event: &Event, started: bool) -> bool {
        let reducing = matches!(self.state, CaState::Cwr | CaState::Recovery);
        let settled = event.owed.is_none() && !event.asked;
        if matches!(hook, Hook::on_negotiated | Hook::on_syn_acked | Hook::on_start) {
            return !started;
        }
        started
            && match hook {
                Hook::ssthresh => match event.before {
                    Some(Hook::on_timer) => true,
                    Some(Hook::reduces) => event.yes,
                    None => self.state <= CaState::Cwr, // loss detection by a timer
                    _ => {
                        settled
                            && event.ack.is_some_and(|ack| ack.newly_lost > 0)
                            && self.state <= CaState::Cwr
                    }
                },
                Hook::ssthresh_for_mark => {
                    settled && event.before == Some(Hook::on_ecn) && event.yes && self.state < CaState::Cwr
                }
                Hook::min_cwnd => !event.timer,
                Hook::on_rto => event.timer,
                Hook::on_ecn => settled && event.ack.is_some_and(|ack| ack.ece) && self.state <= CaState::Cwr,
                Hook::on_totals => self.needs.keeps_rates(),
                Hook::on_lost => {
                    let shown = event.ack.is_none_or(|ack| ack.newly_lost > 0); // losses are detected by an ACK or by a timer
                    self.needs.losses && shown && settled && self.state <= CaState::Cwr
                }
                Hook::on_repaired => self.needs.losses && self.state <= CaState::Disorder,
                Hook::on_state => match (event.before, event.owed) {
                    (None, _) => self.state == CaState::Loss,
                    (Some(Hook::on_rto), Some(_)) => !self.needs.keeps_rates(),
                    (Some(Hook::on_sample), None) => self.state <= CaState::Disorder,
                    (_, owed) => owed.is_some() && !event.asked,
                },
                Hook::on_recovered => reducing && (settled || event.before == Some(Hook::undo_cwnd)),
                Hook::undo_cwnd => settled && self.state >= CaState::Cwr,
                Hook::on_ack => {
                    settled
                        && !self.needs.control
                        && !reducing
                        && event.ack.is_some_and(|ack| ack.delivered > 0)
                }
                Hook::on_control => settled && self.needs.control && event.ack.is_some(),
                Hook::reduces => self.needs.reduces,
                Hook::on_idle => self.needs.idle,
                Hook::on_restart => !self.needs.control,
                _ => true,
            }
    }

    /// Call the hook as a sender does, and check its effects.
    fn play(&mut self, hook: Hook, event: &mut Event) -> Result<(), Violation> {
        let (now, name) = (self.now, hook.row().name);
        let before = self.window.cwnd;
        match hook {
            Hook::on_sample => {
                let (limited, marked) = (self.stream.below(5) > 0, self.stream.below(12) == 0);
                let segments = self.stream.below(4) as u32;
                let mut ack = self.sample(segments, limited, marked);
                self.cc.on_sample(&mut self.window, &ack);
                let lost = self.stream.below(20) == 0;
                self.lose_one(&mut ack, lost);
                event.ack = Some(ack);
            }
            Hook::on_ecn => {
                let ack = event.ack.expect("invariant: an ACK").arrival;
                event.yes = self.cc.on_ecn(&mut self.window, &ack);
            }
            Hook::ssthresh | Hook::ssthresh_for_mark => {
                (self.window.prior_cwnd, self.window.cwnd_cnt) = (before, 0);
                let target = match hook {
                    Hook::ssthresh => self.cc.ssthresh(&self.window, before),
                    _ => self.cc.ssthresh_for_mark(&self.window, before),
                };
                self.take_target(target)?;
                event.asked = true;
                event.owed = Some(match (event.timer, event.before) {
                    (true, _) => CaState::Loss,
                    (_, Some(Hook::on_ecn | Hook::reduces)) => CaState::Cwr,
                    _ => CaState::Recovery,
                });
            }
            Hook::min_cwnd => {
                let least = self.cc.min_cwnd(self.window.ssthresh);
                event.asked = false;
                if least < 1 {
                    return Err(self.broken("window", name, format!("a least window of {least}")));
                }
            }
            Hook::on_timer => {
                self.now += Span::from_ms(300);
                event.timer = true;
                self.cc.on_timer(self.now);
            }
            Hook::on_rto => {
                event.asked = false;
                self.cc.on_rto(&mut self.window, now);
                self.look(name)?;
                self.window.cwnd = 1;
            }
            Hook::on_state => {
                let next = match (event.owed.take(), self.state) {
                    (Some(owed), _) => owed,
                    (None, CaState::Open) => CaState::Disorder,
                    (None, CaState::Loss) => CaState::Loss,
                    (None, _) => CaState::Open,
                };
                self.set_state(next)?;
            }
            Hook::on_recovered => {
                if !self.needs.control && event.before != Some(Hook::undo_cwnd) {
                    self.window.cwnd = self.window.ssthresh.min(before).max(1);
                }
                self.cc.on_recovered(&mut self.window, now);
                event.owed = Some(CaState::Open);
            }
            Hook::undo_cwnd => {
                self.window.cwnd = self.cc.undo_cwnd(&self.window);
                self.window.ssthresh = self.window.ssthresh.max(self.window.cwnd);
                event.owed = Some(CaState::Open);
            }
            Hook::on_ack => {
                let ack = event.ack.expect("invariant: an ACK");
                self.cc.on_ack(&mut self.window, &ack);
                // 2 is the minimum target window; rising to it is not growth
                if !ack.cwnd_limited && !self.needs.unlimited && self.window.cwnd > before.max(2) {
                    let found = format!("cwnd rose from {before} to {}", self.window.cwnd);
                    return Err(self.broken("application-limited", name, found));
                }
            }
            Hook::on_totals => self.cc.on_totals(self.delivered, self.lost, now),
            Hook::on_lost => {
                let (lost, more, limited) =
                    (1 + self.stream.below(4) as u32, self.stream.below(9) as u32, self.stream.below(5) == 0);
                self.cc.on_lost(&mut self.window, now, self.delivered, lost, lost + more, limited);
            }
            Hook::on_repaired => {
                let limited = self.stream.below(2) == 0;
                self.cc.on_repaired(&mut self.window, now, self.delivered, limited);
            }
            Hook::reduces => event.yes = self.cc.reduces(),
            Hook::on_control => {
                let ack = event.ack.expect("invariant: an ACK");
                self.cc.on_control(&mut self.window, &ack);
            }
            Hook::on_tx_start => {
                let idle = Span::from_ms(self.stream.below(5_000));
                self.now += idle;
                self.tell(hook, event);
            }
            plain => self.tell(plain, event),
        }
        self.look(name)
    }
}

/// Default argument values, one per type, for hooks without special treatment.
struct Story {
    now: Time,
    span: Span,
    count: u32,
    total: u64,
    flag: bool,
    state: CaState,
    window: Window,
    ack: AckSample,
}

/// Hook argument with its value from the story. `back` copies a window that the hook has changed back to the sender.
trait Drawn<'a>: Sized {
    type Kept;
    fn keep(story: &Story) -> Self::Kept;
    fn lend(kept: &'a mut Self::Kept) -> Self;
    fn back(_kept: Self::Kept, _window: &mut Window) {}
}

impl<'a> Drawn<'a> for &'a mut Window {
    type Kept = Window;
    fn keep(story: &Story) -> Window {
        story.window
    }
    fn lend(kept: &'a mut Window) -> &'a mut Window {
        kept
    }
    fn back(kept: Window, window: &mut Window) {
        *window = kept;
    }
}

macro_rules! drawn {
    ($($type:ty: $kept:ty = $field:ident, $lent:ident => $lend:expr;)*) => {
        $(impl<'a> Drawn<'a> for $type {
            type Kept = $kept;
            fn keep(story: &Story) -> $kept {
                story.$field.into()
            }
            fn lend($lent: &'a mut $kept) -> $type {
                $lend
            }
        })*
    };
}

drawn! {
    &'a Window: Window = window, kept => kept;
    &'a Arrival: AckSample = ack, kept => &kept.arrival;
    &'a AckSample: AckSample = ack, kept => kept;
    Time: Time = now, kept => *kept;
    Span: Span = span, kept => *kept;
    u32: u32 = count, kept => *kept;
    u64: u64 = total, kept => *kept;
    bool: bool = flag, kept => *kept;
    CaState: CaState = state, kept => *kept;
}

macro_rules! told {
    (
        events { $(
            $(#[doc = $about:literal])+
            fn $hook:ident($me:ident: $me_ty:ty $(, $arg:ident: $type:ty)*) $(-> $answer:ty)? $body:block $($required:ident)?
            [$linux:literal, after $($before:ident)+ $(, own $own:literal)?] $($inline:ident)?;
        )* }
        itself { $($itself:tt)* }
    ) => {
        impl<C: CongestionControl> Path<C> {
            /// Call a hook with default arguments of the right types.
            fn tell(&mut self, hook: Hook, event: &Event) {
                let story = Story {
                    now: self.now,
                    span: self.srtt,
                    count: SMSS,
                    total: self.snd_una,
                    flag: self.needs.l4s,
                    state: self.state,
                    window: self.window,
                    ack: event.ack.unwrap_or_else(|| Arrival { now: self.now, smss: SMSS, ..Arrival::default() }.into()),
                };
                match hook {
                    $(Hook::$hook => {
                        $(let mut $arg = <$type as Drawn<'_>>::keep(&story);)*
                        let _ = self.cc.$hook($(<$type as Drawn<'_>>::lend(&mut $arg)),*);
                        $(<$type as Drawn<'_>>::back($arg, &mut self.window);)*
                    })*
                    _ => {}
                }
            }
        }
    };
}

crate::hooks!(told);
