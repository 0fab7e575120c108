//! Foundation of ackclock: integer time and units, the event queue, random streams, and the records exchanged by
//! the other crates (packets with TCP and datagram headers, the trace, controller options). The records have
//! fields but no behaviour: no I/O, no clock, no protocol, no network element.

pub mod accecn;
pub mod calls;
pub mod datagram;
pub mod digest;
pub mod distribution;
pub mod event;
pub mod foreign;
pub mod options;
pub mod pacing;
pub mod packet;
pub mod prefetch;
pub mod rng;
pub mod time;
pub mod trace;
pub mod units;

pub use ackclock_schema as schema;
pub use ackclock_schema::{choice, family, table};

pub use accecn::AccEcnOption;
pub use datagram::{Datagram, DatagramEndpoint};
pub use digest::Digest;
pub use distribution::Distribution;
pub use event::EventQueue;
pub use pacing::{CatchUp, HostPacing};
pub use packet::{Flags, FlowId, Header, Packet, SackBlock, SackList, Segment};
pub use rng::Stream;
pub use time::{Span, Time};
pub use units::Rate;
