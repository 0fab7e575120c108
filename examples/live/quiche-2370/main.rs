//! A download over QUIC with the library quiche: `serve CERTIFICATE KEY`, and `get HOST BYTES SECONDS`. The client asks
//! for a number of bytes, and tells what it has got after these seconds at the latest; exit code 1 if some are missing.

use std::error::Error;
use std::net::{SocketAddr, ToSocketAddrs, UdpSocket};
use std::time::{Duration, Instant};

use quiche::{Config, Connection, ConnectionId, RecvInfo};

type Answer<T> = Result<T, Box<dyn Error>>;

/// Largest datagram, bytes.
const DATAGRAM: usize = 1350;
const PORT: u16 = 4433;
const STREAM: u64 = 0;

fn main() -> Answer<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["serve", certificate, key] => serve(certificate, key),
        ["get", host, bytes, seconds] => get(host, bytes.parse()?, Duration::from_secs(seconds.parse()?)),
        _ => Err("allowed: serve CERTIFICATE KEY, or get HOST BYTES SECONDS".into()),
    }
}

fn settings() -> Answer<Config> {
    let mut config = Config::new(quiche::PROTOCOL_VERSION)?;
    config.set_application_protos(&[b"bytes"])?;
    config.set_cc_algorithm(quiche::CongestionControlAlgorithm::CUBIC);
    config.enable_pacing(false); // the socket sends at once
    config.set_max_recv_udp_payload_size(DATAGRAM);
    config.set_max_send_udp_payload_size(DATAGRAM);
    config.set_initial_max_data(1 << 26);
    config.set_initial_max_stream_data_bidi_local(1 << 26);
    config.set_initial_max_stream_data_bidi_remote(1 << 26);
    config.set_initial_max_streams_bidi(1);
    config.verify_peer(false);
    Ok(config)
}

/// A connection and its socket.
struct End {
    socket: UdpSocket,
    local: SocketAddr,
    connection: Connection,
}

impl End {
    /// Send what may be sent.
    fn send(&mut self) -> Answer<()> {
        let mut datagram = [0; DATAGRAM];
        loop {
            match self.connection.send(&mut datagram) {
                Ok((len, to)) => drop(self.socket.send_to(&datagram[..len], to.to)?),
                Err(quiche::Error::Done) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Wait for datagrams, or for the connection's timer, until `latest`, and read all that are there.
    fn wait(&mut self, latest: Option<Instant>) -> Answer<()> {
        let left = latest.map(|at| at.saturating_duration_since(Instant::now()));
        let patience = [self.connection.timeout(), left].into_iter().flatten().min();
        if patience == Some(Duration::ZERO) {
            self.connection.on_timeout();
            return Ok(());
        }
        self.socket.set_read_timeout(patience)?;
        let mut datagram = [0; 2048];
        let Ok((mut len, mut from)) = self.socket.recv_from(&mut datagram) else {
            self.connection.on_timeout();
            return Ok(());
        };
        self.socket.set_nonblocking(true)?;
        loop {
            let about = RecvInfo { from, to: self.local };
            let _ = self.connection.recv(&mut datagram[..len], about); // one that cannot be read counts as lost
            match self.socket.recv_from(&mut datagram) {
                Ok(next) => (len, from) = next,
                Err(_) => return Ok(self.socket.set_nonblocking(false)?),
            }
        }
    }
}

/// Answer the request of one client.
fn serve(certificate: &str, key: &str) -> Answer<()> {
    let mut config = settings()?;
    config.load_cert_chain_from_pem_file(certificate)?;
    config.load_priv_key_from_pem_file(key)?;
    let socket = UdpSocket::bind(("0.0.0.0", PORT))?;
    let mut datagram = [0; 2048];
    let (len, from) = socket.recv_from(&mut datagram)?;
    let local = SocketAddr::new([10, 0, 0, 1].into(), PORT);
    let name = quiche::Header::from_slice(&mut datagram[..len], quiche::MAX_CONN_ID_LEN)?.dcid.to_vec();
    let connection = quiche::accept(&ConnectionId::from_vec(name), None, local, from, &mut config)?;
    let mut end = End { socket, local, connection };
    end.connection.recv(&mut datagram[..len], RecvInfo { from, to: local })?;
    let (mut asked, mut left, block) = (String::new(), None, [0; 1 << 16]);
    while !end.connection.is_closed() {
        end.send()?;
        end.wait(None)?;
        let mut part = [0; 64];
        if let Ok((len, true)) = end.connection.stream_recv(STREAM, &mut part) {
            asked += std::str::from_utf8(&part[..len])?;
            left = Some(asked.parse::<usize>()?);
        }
        while let Some(bytes) = left {
            let now = bytes.min(block.len());
            let Ok(sent) = end.connection.stream_send(STREAM, &block[..now], now == bytes) else { break };
            left = (sent < bytes).then_some(bytes - sent);
        }
    }
    Ok(())
}

/// Ask a server for `bytes` bytes, and read them until `limit` is over.
fn get(host: &str, bytes: usize, limit: Duration) -> Answer<()> {
    let start = Instant::now();
    let peer = (host, PORT).to_socket_addrs()?.next().ok_or("no address")?;
    let socket = UdpSocket::bind(("0.0.0.0", 0))?;
    socket.connect(peer)?;
    let local = socket.local_addr()?;
    let name = ConnectionId::from_ref(b"of the client");
    let connection = quiche::connect(None, &name, local, peer, &mut settings()?)?;
    let mut end = End { socket, local, connection };
    let (mut got, mut asked, mut block) = (0, false, vec![0; 1 << 16]);
    while got < bytes && start.elapsed() < limit && !end.connection.is_closed() {
        if end.connection.is_established() && !asked {
            end.connection.stream_send(STREAM, bytes.to_string().as_bytes(), true)?;
            asked = true;
        }
        end.send()?;
        end.wait(Some(start + limit))?;
        while let Ok((len, _)) = end.connection.stream_recv(STREAM, &mut block) {
            got += len;
        }
    }
    println!("{got} {:.3}", start.elapsed().as_secs_f64());
    std::process::exit(i32::from(got < bytes))
}
