//! List of TCP options between `<` and `>`.

use ackclock_core::AccEcnOption;

use super::{unexpected, Parser};
use crate::ast::{TcpOption, TcpOptions};
use crate::error::Error;
use crate::lexer::Kind;

const MAX24: u64 = (1 << 24) - 1;
const MAX32: u64 = u32::MAX as u64;
/// Maximum size of all options (RFC 9293 §3.1).
const MAX_BYTES: usize = 40;

impl Parser<'_> {
    /// Parse the options, starting after `<`.
    pub(super) fn tcp_options(&mut self) -> Result<TcpOptions, Error> {
        let at = self.peek()?.at;
        if self.peek()?.kind == Kind::Ellipsis {
            self.next()?;
            self.expect('>', "'>' after '<...'")?;
            return Ok(TcpOptions::Any);
        }
        let mut list = Vec::new();
        let mut bytes = 0;
        loop {
            let option = self.tcp_option()?;
            bytes += option.bytes();
            list.push(option);
            if bytes > MAX_BYTES {
                return Err(Error::value(at, "length of the options", bytes, "40 bytes at most"));
            }
            if self.take_if('>')? {
                break;
            }
            self.expect(',', "',' and another option, or '>'")?;
        }
        if bytes % 4 != 0 {
            return Err(Error::value(
                at,
                "length of the options",
                bytes,
                "multiples of 4, filled up with nop",
            ));
        }
        Ok(TcpOptions::Exactly(list))
    }

    fn tcp_option(&mut self) -> Result<TcpOption, Error> {
        let token = self.next()?;
        if token.kind != Kind::Word {
            return Err(unexpected(&token, "a TCP option"));
        }
        Ok(match token.text {
            "nop" => TcpOption::Nop,
            "eol" => TcpOption::Eol,
            "mss" => TcpOption::Mss(self.number("mss", u16::MAX as u64)? as u16),
            "wscale" => TcpOption::WindowScale(self.number("wscale", u8::MAX as u64)? as u8),
            "sackOK" => TcpOption::SackPermitted,
            "sack" => TcpOption::Sack(self.sack_blocks()?),
            "TS" => {
                let val = self.labelled("val", MAX32)?;
                TcpOption::Timestamps { val, ecr: self.labelled("ecr", MAX32)? }
            }
            "FO" | "FOEXP" => {
                TcpOption::FastOpen { experimental: token.text == "FOEXP", cookie: self.cookie()? }
            }
            "md5" => {
                let at = self.peek()?.at;
                let digest = self.cookie()?;
                let found = digest.len();
                let digest = digest
                    .try_into()
                    .map_err(|_| Error::value(at, "md5", format_args!("{found} bytes"), "16 bytes"))?;
                TcpOption::Md5(digest)
            }
            "ECN" => TcpOption::AccEcn(self.acc_ecn()?),
            other => return Err(Error::unsupported(token.at, format_args!("TCP option '{other}'"))),
        })
    }

    fn labelled(&mut self, label: &str, most: u64) -> Result<u32, Error> {
        if !self.take_if_word(label)? {
            let token = self.next()?;
            return Err(unexpected(&token, &format!("'{label}' and a number")));
        }
        Ok(self.number(label, most)? as u32)
    }

    fn sack_blocks(&mut self) -> Result<Vec<(u32, u32)>, Error> {
        let mut blocks = Vec::new();
        while blocks.is_empty() || self.peek()?.kind == Kind::Integer {
            let at = self.peek()?.at;
            let left = self.number("left edge of a SACK block", MAX32)? as u32;
            self.expect(':', "':' and the right edge of the SACK block")?;
            blocks.push((left, self.number("right edge of a SACK block", MAX32)? as u32));
            if blocks.len() > 4 {
                return Err(Error::value(at, "SACK blocks", blocks.len(), "4 at most"));
            }
        }
        Ok(blocks)
    }

    /// Parse hexadecimal digits without `0x`, possibly none. They may look like a number or like a word.
    fn cookie(&mut self) -> Result<Vec<u8>, Error> {
        let token = self.peek()?;
        if !matches!(token.kind, Kind::Integer | Kind::Word | Kind::Hex) {
            return Ok(Vec::new());
        }
        self.next()?;
        let digits = token.text.strip_prefix("0x").unwrap_or(token.text);
        if token.kind == Kind::Word && !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(Error::unsupported(
                token.at,
                format_args!("'{}' as a cookie: no definition", token.text),
            ));
        }
        let refuse = || {
            Error::value(token.at, "cookie", token.text, "an even number of hexadecimal digits, 36 at most")
        };
        if digits.len() % 2 != 0 || digits.len() > 36 || !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(refuse());
        }
        (0..digits.len() / 2)
            .map(|i| u8::from_str_radix(&digits[2 * i..2 * i + 2], 16).map_err(|_| refuse()))
            .collect()
    }

    fn acc_ecn(&mut self) -> Result<AccEcnOption, Error> {
        let order1 = self.peek()?.is_word("e1b");
        let names = if order1 { ["e1b", "ceb", "e0b"] } else { ["e0b", "ceb", "e1b"] };
        let mut counters = vec![self.labelled(names[0], MAX24)?];
        for name in &names[1..] {
            if self.peek()?.kind == Kind::Word {
                counters.push(self.labelled(name, MAX24)?);
            }
        }
        Ok(AccEcnOption::new(order1, &counters))
    }
}
