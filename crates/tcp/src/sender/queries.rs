//! Queries by the connection and by TCP_INFO.

use super::Sender;

impl Sender {
    /// Whether both ends agreed on SACK.
    pub fn has_sack(&self) -> bool {
        self.sack
    }

    /// Whether our FIN has been acknowledged.
    pub fn fin_acked(&self) -> bool {
        self.stream.fin_sent() && self.board.packets_out() == 0
    }

    /// Whether there is no data to send and none outstanding.
    pub fn is_idle(&self) -> bool {
        self.board.packets_out() == 0 && !self.has_new_data()
    }

    /// Payload bytes cumulatively acknowledged.
    pub fn acked(&self) -> u64 {
        self.snd_una - 1 - self.fin_acked() as u64
    }

    /// Payload bytes written by the application.
    pub fn written(&self) -> u64 {
        self.stream.end() - 1
    }
}
