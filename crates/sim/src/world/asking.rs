//! Worlds in which an adversary decides the fate of packets, and which can be copied: see `runs/prove`.

use ackclock_core::Time;
use ackclock_net::Adversary;
use ackclock_tcp::Halves;

use super::{Application, World};
use crate::transport::{DatagramEnd, Transport};

impl World {
    /// Install the adversary. It decides at every link for whose name `asks` returns true.
    pub fn set_adversary(&mut self, adversary: Adversary, asks: impl Fn(&str) -> bool) {
        self.net.pool.set_adversary(adversary);
        for at in 0..self.net.links.len() {
            if asks(&self.net.names.of(at)) {
                self.net.links[at].link.ask_adversary();
            }
        }
    }

    /// The adversary.
    pub fn adversary(&mut self) -> &mut Adversary {
        self.net.pool.adversary().expect("invariant: set before the run")
    }

    /// Process events up to and including `end`, until `goes_on` returns false after an event. Return the number of
    /// events processed.
    pub fn run_while<A: Application>(
        &mut self,
        app: &mut A,
        end: Time,
        mut goes_on: impl FnMut(&mut World, &A) -> bool,
    ) -> u32 {
        let mut events = 0;
        self.until = end;
        self.net.look_for_sources(self.links_may_stand());
        self.set_horizon();
        while let Some((t, id)) = self.net.agenda.begin(end) {
            self.happens(app, t, id);
            events += 1;
            if !goes_on(self, app) {
                return events;
            }
        }
        self.now = end;
        self.net.catch_up(end, Time::NEVER);
        events
    }

    /// Number of packets dropped by queues so far.
    pub fn dropped_by_queues(&self) -> u64 {
        self.net.links.iter().map(|slot| slot.link.dropped_by_queue()).sum()
    }

    /// Reason why this world cannot be copied; `None` if it can be.
    pub fn cannot_copy(&self) -> Option<String> {
        let open = self.ends.iter().flatten().find_map(|end| match &end.transport {
            Transport::Tcp(tcp) => tcp.cannot_copy(),
            Transport::Datagram(end) => match &**end {
                DatagramEnd::Foreign(_) => Some("found a stack that others have written".to_string()),
                DatagramEnd::PccSender(sender) => sender.cannot_copy(),
                _ => None,
            },
        });
        open.or_else(|| self.over.iter().find_map(Halves::cannot_copy))
    }

    /// Let copies of this world reuse the memory of discarded ones.
    pub fn share_memory(&mut self) {
        self.net.agenda.share_wheels();
    }

    /// Discard this world and keep its memory for the next copy.
    pub fn give_back(self) {
        self.net.agenda.give_back();
    }
}
