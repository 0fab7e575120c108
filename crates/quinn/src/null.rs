//! Cryptography without secrets: nothing is encrypted, but messages have the sizes of TLS 1.3, and every packet carries
//! a 16-byte tag that contains the key and the packet number. A packet opened with the wrong key is therefore rejected,
//! as with real encryption.

use std::any::Any;
use std::io::Cursor;
use std::sync::Arc;

use bytes::BytesMut;
use quinn_proto::crypto::{
    AeadKey, ClientConfig, CryptoError, ExportKeyingMaterialError, HandshakeTokenKey, HeaderKey, HmacKey,
    KeyPair, Keys, PacketKey, ServerConfig, Session, UnsupportedVersion,
};
use quinn_proto::transport_parameters::TransportParameters;
use quinn_proto::{ConnectError, ConnectionId, Side, TransportError, TransportErrorCode};

use ackclock_core::foreign::hash;

const TAG: usize = 16;
/// Size of a message's header, bytes: kind and two lengths.
const PREFIX: usize = 5;

/// Sizes of the handshake messages, bytes. They determine the number of round trips (RFC 9000 §8.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sizes {
    pub hello: usize,
    pub server_hello: usize,
    /// The server's certificate and its key.
    pub flight: usize,
    pub finished: usize,
}

impl Default for Sizes {
    fn default() -> Sizes {
        Sizes { hello: 200, server_hello: 90, flight: 1000, finished: 36 }
    }
}

/// Client and server configuration, and the token key.
#[derive(Debug)]
pub(crate) struct Null(pub Sizes);

struct Key(u64);

impl PacketKey for Key {
    fn encrypt(&self, packet: u64, buf: &mut [u8], _header_len: usize) {
        let at = buf.len() - TAG;
        buf[at..at + 8].copy_from_slice(&self.0.to_le_bytes());
        buf[at + 8..].copy_from_slice(&packet.to_le_bytes());
    }

    fn decrypt(&self, packet: u64, _header: &[u8], payload: &mut BytesMut) -> Result<(), CryptoError> {
        let at = payload.len().checked_sub(TAG).ok_or(CryptoError)?;
        if payload[at..at + 8] != self.0.to_le_bytes() || payload[at + 8..] != packet.to_le_bytes() {
            return Err(CryptoError);
        }
        payload.truncate(at);
        Ok(())
    }

    fn tag_len(&self) -> usize {
        TAG
    }

    fn confidentiality_limit(&self) -> u64 {
        u64::MAX
    }

    fn integrity_limit(&self) -> u64 {
        u64::MAX
    }
}

struct Open;

impl HeaderKey for Open {
    fn decrypt(&self, _: usize, _: &mut [u8]) {}
    fn encrypt(&self, _: usize, _: &mut [u8]) {}
    fn sample_size(&self) -> usize {
        TAG // determines the padding of short packets
    }
}

fn packet_keys(secret: u64, side: Side) -> KeyPair<Box<dyn PacketKey>> {
    let [client, server] = [secret, !secret].map(|key| Box::new(Key(key)) as Box<dyn PacketKey>);
    match side {
        Side::Client => KeyPair { local: client, remote: server },
        Side::Server => KeyPair { local: server, remote: client },
    }
}

fn keys(secret: u64, side: Side) -> Keys {
    let header =
        KeyPair { local: Box::new(Open) as Box<dyn HeaderKey>, remote: Box::new(Open) as Box<dyn HeaderKey> };
    Keys { header, packet: packet_keys(secret, side) }
}

fn initial(cid: &ConnectionId, side: Side) -> Keys {
    keys(hash(cid), side)
}

const HANDSHAKE: u64 = 1;
const ONE_RTT: u64 = 2;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    Start,
    AwaitHello,
    Hello,
    Flight,
    AwaitFinished,
    Finished,
    Done,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
enum Message {
    ClientHello = 1,
    ServerHello = 2,
    ServerFlight = 3,
    ClientFinished = 4,
}

struct Handshake {
    side: Side,
    sizes: Sizes,
    step: Step,
    own: TransportParameters,
    peer: Option<TransportParameters>,
    /// Bytes of an incomplete message.
    pending: Vec<u8>,
    generation: u64,
}

impl Handshake {
    fn new(side: Side, sizes: Sizes, own: TransportParameters) -> Box<Handshake> {
        let step = if side.is_client() { Step::Start } else { Step::AwaitHello };
        Box::new(Handshake { side, sizes, step, own, peer: None, pending: Vec::new(), generation: ONE_RTT })
    }

    fn write(&self, kind: Message, size: usize, with_parameters: bool, out: &mut Vec<u8>) {
        let mut parameters = Vec::new();
        if with_parameters {
            self.own.write(&mut parameters);
        }
        let padding = size.saturating_sub(PREFIX + parameters.len());
        out.push(kind as u8);
        out.extend_from_slice(&(parameters.len() as u16).to_be_bytes());
        out.extend_from_slice(&(padding as u16).to_be_bytes());
        out.extend_from_slice(&parameters);
        out.resize(out.len() + padding, 0);
    }

    /// Process a complete message. Return whether it is the first one with the negotiated parameters.
    fn read(&mut self, kind: u8, parameters: &[u8]) -> Result<bool, TransportError> {
        let expected = match self.step {
            Step::AwaitHello if self.side.is_server() => Message::ClientHello,
            Step::AwaitHello => Message::ServerHello,
            Step::AwaitFinished if self.side.is_server() => Message::ClientFinished,
            Step::AwaitFinished => Message::ServerFlight,
            _ => return Err(TransportError::from(TransportErrorCode::PROTOCOL_VIOLATION)),
        };
        if kind != expected as u8 {
            return Err(TransportError::from(TransportErrorCode::PROTOCOL_VIOLATION));
        }
        if !parameters.is_empty() {
            let read = TransportParameters::read(self.side, &mut Cursor::new(parameters));
            self.peer =
                Some(read.map_err(|_| TransportError::from(TransportErrorCode::TRANSPORT_PARAMETER_ERROR))?);
        }
        self.step = match expected {
            Message::ClientHello | Message::ServerHello => Step::Hello,
            Message::ServerFlight => Step::Finished,
            Message::ClientFinished => Step::Done,
        };
        Ok(matches!(expected, Message::ClientHello | Message::ServerFlight))
    }
}

impl Session for Handshake {
    fn initial_keys(&self, dst_cid: &ConnectionId, side: Side) -> Keys {
        initial(dst_cid, side)
    }

    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        None
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        None
    }

    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        None
    }

    fn early_data_accepted(&self) -> Option<bool> {
        None
    }

    fn is_handshaking(&self) -> bool {
        match self.side {
            Side::Client => !matches!(self.step, Step::Finished | Step::Done),
            Side::Server => self.step != Step::Done,
        }
    }

    fn read_handshake(&mut self, buf: &[u8]) -> Result<bool, TransportError> {
        self.pending.extend_from_slice(buf);
        let mut news = false;
        while let Some(&[kind, a, b, c, d]) = self.pending.first_chunk() {
            let parameters = usize::from(u16::from_be_bytes([a, b]));
            let whole = PREFIX + parameters + usize::from(u16::from_be_bytes([c, d]));
            if self.pending.len() < whole {
                break;
            }
            let rest = self.pending.split_off(whole);
            let message = std::mem::replace(&mut self.pending, rest);
            news |= self.read(kind, &message[PREFIX..PREFIX + parameters])?;
        }
        Ok(news)
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        Ok(self.peer)
    }

    fn write_handshake(&mut self, buf: &mut Vec<u8>) -> Option<Keys> {
        let (side, sizes) = (self.side, self.sizes);
        let (next, keys) = match (self.step, side) {
            (Step::Start, _) => {
                self.write(Message::ClientHello, sizes.hello, true, buf);
                (Step::AwaitHello, None)
            }
            (Step::Hello, Side::Server) => {
                self.write(Message::ServerHello, sizes.server_hello, false, buf);
                (Step::Flight, Some(keys(HANDSHAKE, side)))
            }
            (Step::Hello, Side::Client) => (Step::AwaitFinished, Some(keys(HANDSHAKE, side))),
            (Step::Flight, _) => {
                self.write(Message::ServerFlight, sizes.flight, true, buf);
                (Step::AwaitFinished, Some(keys(ONE_RTT, side)))
            }
            (Step::Finished, _) => {
                self.write(Message::ClientFinished, sizes.finished, false, buf);
                (Step::Done, Some(keys(ONE_RTT, side)))
            }
            (Step::AwaitHello | Step::AwaitFinished | Step::Done, _) => return None,
        };
        self.step = next;
        keys
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        self.generation += 1;
        Some(packet_keys(self.generation, self.side))
    }

    fn is_valid_retry(&self, orig_dst_cid: &ConnectionId, header: &[u8], payload: &[u8]) -> bool {
        let Some(at) = payload.len().checked_sub(TAG) else { return false };
        payload[at..] == retry_tag(orig_dst_cid, &[header, &payload[..at]].concat())
    }

    fn export_keying_material(
        &self,
        _: &mut [u8],
        _: &[u8],
        _: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        Err(ExportKeyingMaterialError)
    }
}

fn retry_tag(cid: &ConnectionId, packet: &[u8]) -> [u8; TAG] {
    let mut tag = [0; TAG];
    tag[..8].copy_from_slice(&hash(cid).to_le_bytes());
    tag[8..].copy_from_slice(&hash(packet).to_le_bytes());
    tag
}

impl ClientConfig for Null {
    fn start_session(
        self: Arc<Self>,
        _version: u32,
        _server_name: &str,
        params: &TransportParameters,
    ) -> Result<Box<dyn Session>, ConnectError> {
        Ok(Handshake::new(Side::Client, self.0, *params))
    }
}

impl ServerConfig for Null {
    fn initial_keys(&self, _version: u32, dst_cid: &ConnectionId) -> Result<Keys, UnsupportedVersion> {
        Ok(initial(dst_cid, Side::Server))
    }

    fn retry_tag(&self, _version: u32, orig_dst_cid: &ConnectionId, packet: &[u8]) -> [u8; 16] {
        retry_tag(orig_dst_cid, packet)
    }

    fn start_session(self: Arc<Self>, _version: u32, params: &TransportParameters) -> Box<dyn Session> {
        Handshake::new(Side::Server, self.0, *params)
    }
}

/// Signs stateless reset tokens, which must differ between connection IDs.
pub(crate) struct ResetKey;

impl HmacKey for ResetKey {
    fn sign(&self, data: &[u8], signature_out: &mut [u8]) {
        let mut word = hash(data);
        for chunk in signature_out.chunks_mut(8) {
            chunk.copy_from_slice(&word.to_le_bytes()[..chunk.len()]);
            word = hash(&word.to_le_bytes());
        }
    }

    fn signature_len(&self) -> usize {
        32
    }

    fn verify(&self, data: &[u8], signature: &[u8]) -> Result<(), CryptoError> {
        let mut own = vec![0; signature.len()];
        self.sign(data, &mut own);
        if own == signature {
            Ok(())
        } else {
            Err(CryptoError)
        }
    }
}

/// Leaves tokens unencrypted, but as large as sealed ones.
pub(crate) struct TokenKey;

impl HandshakeTokenKey for TokenKey {
    fn aead_from_hkdf(&self, _: &[u8]) -> Box<dyn AeadKey> {
        Box::new(TokenKey)
    }
}

impl AeadKey for TokenKey {
    fn seal(&self, data: &mut Vec<u8>, _: &[u8]) -> Result<(), CryptoError> {
        data.resize(data.len() + TAG, 0);
        Ok(())
    }

    fn open<'a>(&self, data: &'a mut [u8], _: &[u8]) -> Result<&'a mut [u8], CryptoError> {
        let whole = data.len().checked_sub(TAG).ok_or(CryptoError)?;
        Ok(&mut data[..whole])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_opens_with_its_key_and_number_only() {
        let sealed = |packet| {
            let mut bytes = vec![7; 30];
            bytes.resize(46, 0);
            packet_keys(5, Side::Client).local.encrypt(packet, &mut bytes, 10);
            BytesMut::from(&bytes[10..])
        };
        let opens = |secret, packet, mut bytes: BytesMut| {
            packet_keys(secret, Side::Server).remote.decrypt(packet, &[], &mut bytes).map(|()| bytes)
        };
        assert_eq!(opens(5, 9, sealed(9)).expect("opens")[..], [7; 20]);
        assert!(opens(5, 8, sealed(9)).is_err());
        assert!(opens(6, 9, sealed(9)).is_err());
        assert!(opens(5, 9, BytesMut::from(&[0; 15][..])).is_err());
    }

    #[test]
    fn reset_tokens_differ() {
        let sign = |data: &[u8]| {
            let mut out = [0; 32];
            ResetKey.sign(data, &mut out);
            out
        };
        assert_ne!(sign(b"a"), sign(b"b"));
        assert!(ResetKey.verify(b"a", &sign(b"a")).is_ok());
        assert!(ResetKey.verify(b"b", &sign(b"a")).is_err());
    }
}
