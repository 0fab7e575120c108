//! `ip route`: metrics of the route to the peer.

use ackclock_core::Span;

use super::sysctl::Refused;

/// Route metrics; `None` = not set.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Route {
    /// Initial congestion window, segments.
    pub initcwnd: Option<u32>,
    /// Initial receive window, segments.
    pub initrwnd: Option<u32>,
    /// Maximum congestion window, segments.
    pub cwnd: Option<u32>,
    /// MSS to advertise, bytes.
    pub advmss: Option<u32>,
    /// Path MTU, bytes.
    pub mtu: Option<u32>,
    /// Whether the path MTU must not be lowered.
    pub mtu_locked: bool,
    /// Maximum window to advertise, bytes.
    pub window: Option<u32>,
    /// Initial slow-start threshold, segments.
    pub ssthresh: Option<u32>,
    /// Initial reordering degree, segments.
    pub reordering: Option<u32>,
    /// Minimum RTO.
    pub rto_min: Option<Span>,
    /// Whether every segment is acknowledged at once.
    pub quickack: Option<bool>,
    /// Name of the congestion controller.
    pub congctl: Option<String>,
}

/// Keywords for a route's destination, each with a value; irrelevant to a stack with one peer.
const WHERE: &[&str] =
    &["dev", "via", "src", "table", "proto", "scope", "metric", "tos", "dsfield", "from", "to", "type"];

impl Route {
    /// Parse the words of `ip route add|change|replace ...` after the verb.
    pub(super) fn of(words: &[String]) -> Result<Route, Refused> {
        let mut route = Route::default();
        let mut words = words.iter().map(String::as_str);
        let mut first = true;
        while let Some(key) = words.next() {
            if std::mem::take(&mut first)
                && (key == "default" || key.starts_with(|c: char| c.is_ascii_digit()))
            {
                continue; // destination prefix
            }
            let mut value = words.next().unwrap_or_default();
            let locked = value == "lock";
            if locked {
                value = words.next().unwrap_or_default();
            }
            let number = || count(key, value).map(Some);
            match key {
                "initcwnd" => route.initcwnd = number()?,
                "initrwnd" => route.initrwnd = number()?,
                "cwnd" => route.cwnd = number()?,
                "advmss" => route.advmss = number()?,
                "mtu" => {
                    route.mtu = number()?;
                    route.mtu_locked = locked;
                }
                "window" => route.window = number()?,
                "ssthresh" => route.ssthresh = number()?,
                "reordering" => route.reordering = number()?,
                "rto_min" => route.rto_min = Some(milliseconds(key, value)?),
                "quickack" => route.quickack = Some(number()? != Some(0)),
                "congctl" => route.congctl = Some(value.to_string()),
                key if WHERE.contains(&key) => {}
                key => return Err(Refused::Unknown(format!("route metric '{key}'"))),
            }
        }
        Ok(route)
    }
}

fn count(what: &str, text: &str) -> Result<u32, Refused> {
    text.parse().map_err(|_| Refused::value(what, text, "whole numbers"))
}

fn milliseconds(what: &str, text: &str) -> Result<Span, Refused> {
    let refuse = || Refused::value(what, text, "a time such as 5ms or 1s");
    let (digits, unit) = match text.find(|c: char| !c.is_ascii_digit()) {
        Some(at) => text.split_at(at),
        None => (text, "ms"),
    };
    let n: u64 = digits.parse().map_err(|_| refuse())?;
    let span = match unit {
        "us" => Span::from_us(1),
        "ms" => Span::from_ms(1),
        "s" => Span::from_secs(1),
        _ => return Err(refuse()),
    };
    Ok(span * n)
}
