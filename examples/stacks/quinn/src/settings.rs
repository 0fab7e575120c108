//! Controllers and settings of a flow.

use std::ffi::CStr;
use std::sync::Arc;

use quinn_proto::congestion::{BbrConfig, ControllerFactory, CubicConfig, NewRenoConfig};
use quinn_proto::{AckFrequencyConfig, IdleTimeout, MtuDiscoveryConfig, TransportConfig, VarInt};

use crate::traced::{Log, Tracing};

pub(crate) const CONTROLLERS: &CStr = c"cubic,newreno,bbr";

/// Return the controller called `name`, with this initial window in bytes if one is given.
pub(crate) fn controller(
    name: &str,
    window: Option<u64>,
) -> Option<Arc<dyn ControllerFactory + Send + Sync>> {
    Some(match name {
        "cubic" => {
            let mut config = CubicConfig::default();
            window.map(|bytes| config.initial_window(bytes));
            Arc::new(config)
        }
        "newreno" => {
            let mut config = NewRenoConfig::default();
            window.map(|bytes| config.initial_window(bytes));
            Arc::new(config)
        }
        "bbr" => {
            let mut config = BbrConfig::default();
            window.map(|bytes| config.initial_window(bytes));
            Arc::new(config)
        }
        _ => return None,
    })
}

/// Settings of a flow; the defaults are quinn's own.
#[derive(Default)]
pub(crate) struct Settings {
    pub initial_window: Option<u64>,
    pub mtu: Option<u16>,
    receive_window: Option<u32>,
    send_window: Option<u64>,
    ack_every: Option<u32>,
    idle_timeout_s: Option<u32>,
    packet_threshold: Option<u32>,
}

impl Settings {
    /// Parse a JSON object of integers.
    pub fn read(text: &str) -> Result<Settings, String> {
        let mut read = Settings::default();
        let inner = text.trim().strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
        let inner = inner.ok_or("an object of JSON")?;
        for pair in inner.split(',').filter(|pair| !pair.trim().is_empty()) {
            let (key, value) = pair.split_once(':').ok_or("an object of JSON")?;
            let (key, value) = (key.trim().trim_matches('"'), value.trim());
            let number = |least: u32, most: u32| match value.parse::<u32>() {
                Ok(n) if (least..=most).contains(&n) => Ok(n),
                _ => Err(format!("{key}: {least} to {most}")),
            };
            match key {
                "initial_window" => read.initial_window = Some(number(2400, 10_000_000)?.into()),
                "mtu" => read.mtu = Some(number(1200, 8972)? as u16),
                "receive_window" => read.receive_window = Some(number(10_000, 1_000_000_000)?),
                "send_window" => read.send_window = Some(number(10_000, 1_000_000_000)?.into()),
                "ack_every" => read.ack_every = Some(number(2, 1000)?),
                "idle_timeout_s" => read.idle_timeout_s = Some(number(1, 100_000)?),
                "packet_threshold" => read.packet_threshold = Some(number(3, 1000)?),
                _ => {
                    return Err("initial_window, mtu, receive_window, send_window, ack_every, idle_timeout_s, packet_threshold"
                        .to_string())
                }
            }
        }
        Ok(read)
    }

    pub fn transport(
        &self,
        inner: Arc<dyn ControllerFactory + Send + Sync>,
        log: &Arc<Log>,
    ) -> Arc<TransportConfig> {
        let mut config = TransportConfig::default();
        if let Some(bytes) = self.receive_window {
            config.stream_receive_window(VarInt::from_u32(bytes));
        }
        if let Some(bytes) = self.send_window {
            config.send_window(bytes);
        }
        if let Some(s) = self.idle_timeout_s {
            config.max_idle_timeout(Some(IdleTimeout::from(VarInt::from_u32(s * 1000))));
        }
        if let Some(packets) = self.packet_threshold {
            config.packet_threshold(packets);
        }
        if let Some(bytes) = self.mtu {
            let mut discovery = MtuDiscoveryConfig::default();
            discovery.upper_bound(bytes);
            config.mtu_discovery_config(Some(discovery));
        }
        if let Some(every) = self.ack_every {
            let mut frequency = AckFrequencyConfig::default();
            frequency.ack_eliciting_threshold(VarInt::from_u32(every - 1));
            config.ack_frequency_config(Some(frequency));
        }
        config.congestion_controller_factory(Arc::new(Tracing { inner, log: log.clone() }));
        Arc::new(config)
    }
}
