//! Conversion of multiples of the bandwidth-delay product into packets.

use crate::quantity::{self, Exact};
use crate::{Refusal, Value, MOST_PACKETS};

/// A multiple of the bandwidth-delay product, which is known only once the entire scenario has been read.
/// [`Value::Pending`] represents it until then.
#[derive(Clone, Debug)]
pub struct Multiple {
    /// Dotted key of the value.
    pub key: String,
    /// The value as written.
    pub written: String,
    /// Factor by which the bandwidth-delay product is multiplied.
    pub number: Exact,
    /// Whether fractions of a packet are kept.
    pub mean: bool,
}

impl Multiple {
    /// Return this multiple in packets, for a bandwidth-delay product of `bdp` packets.
    pub fn of(&self, bdp: &Exact) -> Result<Value, Refusal> {
        let refused = |found: String, allowed: String| Err(Refusal { key: self.key.clone(), found, allowed });
        let shown = crate::words::quoted(&self.written);
        if bdp.numerator.is_zero() {
            let allowed = "packets or bytes; the path of flow 0 has no delay or no rate to multiply";
            return refused(shown, allowed.to_string());
        }
        let packets = self.number.times(bdp);
        if self.mean {
            return Ok(Value::Number(packets.to_f64()));
        }
        match packets.half_up() {
            whole @ 1.. if whole <= MOST_PACKETS as u128 => Ok(Value::Whole(whole as u64)),
            whole => {
                let amount = match whole {
                    0 => "less than half a packet".to_string(),
                    _ => format!("{whole} packets"),
                };
                let bdp = quantity::few_digits(bdp);
                let allowed = format!("1 to {MOST_PACKETS} packets (1 BDP is {bdp} packets)");
                refused(format!("{shown}, which is {amount}"), allowed)
            }
        }
    }
}
