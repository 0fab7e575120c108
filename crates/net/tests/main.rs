//! Tests of links and queues through their public interface, in one program: each program would be linked with the
//! whole engine.

mod conservation;
mod oracle;
