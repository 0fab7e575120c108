//! Turns tokens into a [`Script`]: one function per rule of the language, two tokens of lookahead, no backtracking.
//! Parsing therefore takes time proportional to the text, and [`Limits`] bound everything else.

mod call;
mod packet;
mod tcp_option;

use std::collections::VecDeque;

use ackclock_core::Span;

use crate::ast::{Action, Command, Event, Packet, Script, ScriptOption, TcpOptions, When};
use crate::error::{Error, Pos};
use crate::lexer::{Kind, Lexer, Token};

/// Latest time in a script: 10^6 s is eleven days, and the sum of a million such steps does not overflow.
const MAX_SECONDS: u64 = 1_000_000;

/// Bounds on a script.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Maximum text size, bytes.
    pub bytes: usize,
    /// Maximum number of events.
    pub events: usize,
    /// Maximum nesting depth of lists, braces and argument lists.
    pub depth: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { bytes: 1 << 20, events: 1_000_000, depth: 16 }
    }
}

/// Parse a script. `defines` are the names and values of `-D name=value` on the command line; definitions in the
/// script take precedence.
pub fn parse(text: &str, defines: &[(String, String)], limits: &Limits) -> Result<Script, Error> {
    let start = Pos { line: 1, column: 1 };
    if text.len() > limits.bytes {
        return Err(Error::Limit { at: start, what: "bytes of the file", limit: limits.bytes as u64 });
    }
    let mut parser = Parser {
        lexer: Lexer::new(text),
        ahead: VecDeque::with_capacity(2),
        defines: Vec::new(),
        limits: *limits,
        depth: 0,
    };
    for (name, value) in defines {
        let mut lexer = Lexer::new(value);
        let token = lexer.next()?;
        let whole = lexer.next()?.kind == Kind::End;
        parser.define(name, token, whole)?;
    }
    parser.script()
}

struct Parser<'s> {
    lexer: Lexer<'s>,
    ahead: VecDeque<Token<'s>>,
    defines: Vec<(&'s str, Token<'s>)>,
    limits: Limits,
    depth: usize,
}

impl<'s> Parser<'s> {
    fn script(&mut self) -> Result<Script, Error> {
        let mut script = Script { options: self.options()?, ..Script::default() };
        if self.peek()?.kind == Kind::Command {
            script.init = Some(self.command()?);
        }
        let mut last_absolute = Span::ZERO;
        loop {
            let token = self.peek()?;
            match token.kind {
                Kind::End => break,
                Kind::Command => {
                    script.cleanup = Some(self.command()?);
                    self.expect_end()?;
                    break;
                }
                _ if script.events.len() >= self.limits.events => {
                    let limit = self.limits.events as u64;
                    return Err(Error::Limit { at: token.at, what: "events", limit });
                }
                _ => {}
            }
            let event = self.event()?;
            check_time(&event, script.events.is_empty(), &mut last_absolute)?;
            script.events.push(event);
        }
        if script.events.is_empty() {
            let token = self.next()?;
            return Err(unexpected(&token, "a time: every script has an event"));
        }
        Ok(script)
    }

    fn expect_end(&mut self) -> Result<(), Error> {
        let token = self.next()?;
        match token.kind {
            Kind::End => Ok(()),
            _ => Err(unexpected(&token, "the end of the file: a command without a time is the last thing")),
        }
    }

    fn options(&mut self) -> Result<Vec<ScriptOption>, Error> {
        let mut options = Vec::new();
        loop {
            let token = self.peek()?;
            if token.is('-') && self.peek_second()?.text.starts_with('D') {
                self.next()?;
                let glued = self.next()?;
                self.definition(glued.text.strip_prefix('D').filter(|name| !name.is_empty()))?;
            } else if token.kind != Kind::Option {
                return Ok(options);
            } else if token.text == "define" {
                self.next()?;
                self.take_if('=')?;
                self.definition(None)?;
            } else {
                self.next()?;
                let value = if self.take_if('=')? { Some(self.option_value()?) } else { None };
                options.push(ScriptOption { at: token.at, name: token.text.to_string(), value });
            }
        }
    }

    fn option_value(&mut self) -> Result<String, Error> {
        debug_assert!(self.ahead.is_empty(), "the '=' was the last token seen");
        let token = self.lexer.next_value()?;
        match token.kind {
            Kind::Word | Kind::Text => Ok(self.defined(token).text.to_string()),
            _ => Err(unexpected(&token, "the value of the option")),
        }
    }

    /// Parse the `NAME=VALUE` of a definition; the name may directly follow `-D`.
    fn definition(&mut self, glued: Option<&'s str>) -> Result<(), Error> {
        let name = match glued {
            Some(name) => name,
            None => {
                // Read without substitution, because a defined name may be defined again.
                let token = self.raw()?;
                if token.kind != Kind::Word {
                    return Err(unexpected(&token, "a name to define"));
                }
                token.text
            }
        };
        self.expect('=', "'=' and the value of the definition")?;
        let value = self.raw()?;
        self.define(name, value, true)
    }

    fn define(&mut self, name: &'s str, value: Token<'s>, whole: bool) -> Result<(), Error> {
        let single = matches!(
            value.kind,
            Kind::Integer | Kind::Hex | Kind::Float | Kind::Word | Kind::Text | Kind::Command
        );
        if !single || !whole {
            return Err(unexpected(
                &value,
                "one number, word, string or command as the value of a definition",
            ));
        }
        self.defines.retain(|(known, _)| *known != name);
        self.defines.push((name, value));
        Ok(())
    }

    /// Return the token. A word that has been defined is replaced by its definition, at the position of its use.
    fn defined(&self, token: Token<'s>) -> Token<'s> {
        if token.kind != Kind::Word {
            return token;
        }
        match self.defines.iter().find(|(name, _)| *name == token.text) {
            Some((_, value)) => Token { at: token.at, ..*value },
            None => token,
        }
    }

    fn command(&mut self) -> Result<Command, Error> {
        let token = self.next()?;
        Ok(Command { at: token.at, text: token.text.to_string() })
    }

    fn event(&mut self) -> Result<Event, Error> {
        let at = self.peek()?.at;
        let time = self.when()?;
        let token = self.peek()?;
        let action = match token.kind {
            Kind::Symbol('<') => {
                self.next()?;
                let packet = self.packet()?;
                check_injected(&packet, at)?;
                Action::Inject(packet)
            }
            Kind::Symbol('>') => {
                self.next()?;
                Action::Expect(self.packet()?)
            }
            Kind::Command => Action::Command(self.next()?.text.to_string()),
            Kind::Code => Action::Code(self.next()?.text.to_string()),
            Kind::Ellipsis | Kind::Word => Action::Call(self.call(time)?),
            _ => return Err(unexpected(&token, "'<', '>', a call, a command or a code block")),
        };
        Ok(Event { at, time, action })
    }

    fn when(&mut self) -> Result<When, Error> {
        if self.take_if('*')? {
            return Ok(When::Any);
        }
        let relative = self.take_if('+')?;
        let from = self.seconds()?;
        if !self.take_if('~')? {
            return Ok(if relative { When::After(from) } else { When::At(from) });
        }
        if relative {
            self.expect('+', "'+': both ends of a window are relative, or none")?;
        }
        let at = self.peek()?.at;
        let to = self.seconds()?;
        if to < from {
            return Err(Error::value(
                at,
                "end of the window",
                seconds(to),
                format_args!("{} s or later", seconds(from)),
            ));
        }
        Ok(if relative { When::AfterBetween(from, to) } else { When::Between(from, to) })
    }

    /// Parse a time in seconds, exact to the nanosecond.
    fn seconds(&mut self) -> Result<Span, Error> {
        let token = self.next()?;
        if !matches!(token.kind, Kind::Integer | Kind::Float) {
            return Err(unexpected(&token, "a time in seconds"));
        }
        let refuse = || {
            let allowed = format_args!("0 to {MAX_SECONDS} s, in whole nanoseconds").to_string();
            Error::value(token.at, "time", token.text, allowed)
        };
        let (whole, fraction) = token.text.split_once('.').unwrap_or((token.text, ""));
        let fraction = fraction.trim_end_matches('0');
        if whole.starts_with('-') || fraction.len() > 9 {
            return Err(refuse());
        }
        let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().map_err(|_| refuse())? };
        let mut ns = 0;
        for digit in fraction.bytes().chain(std::iter::repeat(b'0')).take(9) {
            ns = 10 * ns + (digit - b'0') as u64;
        }
        if whole > MAX_SECONDS || (whole == MAX_SECONDS && ns > 0) {
            return Err(refuse());
        }
        Ok(Span::from_ns(whole * 1_000_000_000 + ns))
    }

    fn raw(&mut self) -> Result<Token<'s>, Error> {
        match self.ahead.pop_front() {
            Some(token) => Ok(token),
            None => self.lexer.next(),
        }
    }

    fn next(&mut self) -> Result<Token<'s>, Error> {
        let token = self.raw()?;
        Ok(self.defined(token))
    }

    fn peek(&mut self) -> Result<Token<'s>, Error> {
        if self.ahead.is_empty() {
            let token = self.lexer.next()?;
            self.ahead.push_back(token);
        }
        Ok(self.defined(self.ahead[0]))
    }

    fn peek_second(&mut self) -> Result<Token<'s>, Error> {
        self.peek()?;
        if self.ahead.len() == 1 {
            let token = self.lexer.next()?;
            self.ahead.push_back(token);
        }
        Ok(self.defined(self.ahead[1]))
    }

    fn take_if(&mut self, c: char) -> Result<bool, Error> {
        let found = self.peek()?.is(c);
        if found {
            self.next()?;
        }
        Ok(found)
    }

    fn take_if_word(&mut self, word: &str) -> Result<bool, Error> {
        let found = self.peek()?.is_word(word);
        if found {
            self.next()?;
        }
        Ok(found)
    }

    fn expect(&mut self, c: char, expected: &str) -> Result<(), Error> {
        let token = self.next()?;
        if token.is(c) {
            return Ok(());
        }
        Err(unexpected(&token, expected))
    }

    /// Parse a whole number from 0 to `most`.
    fn number(&mut self, what: &str, most: u64) -> Result<u64, Error> {
        let token = self.next()?;
        let value = match token.kind {
            Kind::Integer => token.text.parse().ok(),
            Kind::Hex => u64::from_str_radix(&token.text[2..], 16).ok(),
            _ => return Err(unexpected(&token, &format!("a number: {what}"))),
        };
        value.filter(|v| *v <= most).ok_or_else(|| {
            Error::value(token.at, what, token.text, format_args!("whole numbers from 0 to {most}"))
        })
    }

    /// Run `inner` one nesting level deeper.
    fn nested<T>(&mut self, inner: impl FnOnce(&mut Self) -> Result<T, Error>) -> Result<T, Error> {
        if self.depth >= self.limits.depth {
            let at = self.peek()?.at;
            return Err(Error::Limit { at, what: "depth of nesting", limit: self.limits.depth as u64 });
        }
        self.depth += 1;
        let result = inner(self);
        self.depth -= 1;
        result
    }
}

fn unexpected(token: &Token<'_>, expected: &str) -> Error {
    Error::syntax(token.at, token.shown(), expected)
}

/// Check that the time of an event is allowed at its position in the script and for its action.
fn check_time(event: &Event, first: bool, last_absolute: &mut Span) -> Result<(), Error> {
    let (from, window) = match event.time {
        When::At(t) => (Some(t), false),
        When::Between(a, _) => (Some(a), true),
        When::After(_) => (None, false),
        When::AfterBetween(..) | When::Any => (None, true),
    };
    if window && !matches!(event.action, Action::Expect(_)) {
        return Err(Error::value(event.at, "time", "a window", "one instant, but before expected packets"));
    }
    if first && !matches!(event.time, When::At(Span::ZERO) | When::After(Span::ZERO)) {
        return Err(Error::value(event.at, "time of the first event", event.time, "0"));
    }
    if let Some(from) = from {
        if from < *last_absolute {
            let allowed = format!("{} s or later, as the event before", seconds(*last_absolute));
            return Err(Error::value(event.at, "time", event.time, allowed));
        }
        *last_absolute = from;
    }
    Ok(())
}

/// Reject an injected packet that is not fully specified. Such a packet can only be expected.
fn check_injected(packet: &Packet, at: Pos) -> Result<(), Error> {
    let ip = match packet {
        Packet::Tcp(p) => &p.ip,
        Packet::Icmp(p) => &p.ip,
        Packet::Udp(p) => &p.ip,
    };
    if ip.ecn == Some(crate::ast::EcnMark::EitherEct) {
        return Err(Error::value(at, "injected packet", "ect01", "ect0 or ect1"));
    }
    let Packet::Tcp(tcp) = packet else { return Ok(()) };
    if tcp.options == TcpOptions::Any {
        return Err(Error::value(at, "injected packet", "<...>", "a list of options"));
    }
    if tcp.win.is_none() {
        return Err(Error::value(at, "injected packet", "no win", "win and the raw window"));
    }
    Ok(())
}

/// Format a time in seconds, as written in a script.
pub(crate) fn seconds(span: Span) -> String {
    let (whole, ns) = (span.0 / 1_000_000_000, span.0 % 1_000_000_000);
    if ns == 0 {
        return whole.to_string();
    }
    format!("{whole}.{ns:09}").trim_end_matches('0').to_string()
}
