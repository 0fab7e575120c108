//! Tests of links and queues through their public interface, in one binary: every test binary links the whole engine.

mod conservation;
mod oracle;
