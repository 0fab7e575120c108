//! Links and queues through their public face. One program: each one is linked with the whole engine.

mod conservation;
mod oracle;
