//! Socket calls and their expressions.

use super::{seconds, unexpected, Parser};
use crate::ast::{Call, Expr, When};
use crate::error::Error;
use crate::lexer::{Kind, Token};
use crate::shape;

impl Parser<'_> {
    /// Parse a call at `time`, starting with its end time or its name.
    pub(super) fn call(&mut self, time: When) -> Result<Call, Error> {
        let mut until = None;
        if self.peek()?.kind == Kind::Ellipsis {
            self.next()?;
            let at = self.peek()?.at;
            let end = self.seconds()?;
            let begin = match time {
                When::At(t) | When::After(t) => t,
                _ => return Err(Error::value(at, "time of a blocking call", time, "one instant")),
            };
            if end < begin {
                let allowed = format!("{} s or later", seconds(begin));
                return Err(Error::value(at, "end time", seconds(end), allowed));
            }
            until = Some(end);
        }
        let name = self.next()?;
        if name.kind != Kind::Word {
            return Err(unexpected(&name, "the name of a call"));
        }
        if !self.peek()?.is('(') {
            return Err(Error::unsupported(name.at, format_args!("action '{}'", name.text)));
        }
        self.next()?;
        let args = self.list(')')?;
        self.expect('=', "'=' and the result of the call")?;
        let result = self.alternatives(false)?;
        let errno = match self.peek()? {
            token if token.kind == Kind::Word => {
                self.next()?;
                if result != Expr::Int(-1) {
                    return Err(Error::value(
                        token.at,
                        "error of a call",
                        &result,
                        "-1 as the result before it",
                    ));
                }
                if self.peek()?.is('(') {
                    self.note()?;
                }
                Some(token.text.to_string())
            }
            _ => None,
        };
        if self.peek()?.is('(') {
            self.note()?;
        }
        Ok(Call { until, name: name.text.to_string(), args, result, errno })
    }

    /// Skip a remark in parentheses.
    fn note(&mut self) -> Result<(), Error> {
        let open = self.next()?;
        let mut depth = 1u32;
        while depth > 0 {
            let token = self.next()?;
            match token.kind {
                Kind::Symbol('(') => depth += 1,
                Kind::Symbol(')') => depth -= 1,
                Kind::End => return Err(unexpected(&open, "')' at the end of the note")),
                _ => {}
            }
        }
        Ok(())
    }

    /// Parse expressions up to `close`, which is consumed.
    fn list(&mut self, close: char) -> Result<Vec<Expr>, Error> {
        let mut items = Vec::new();
        if self.take_if(close)? {
            return Ok(items);
        }
        self.nested(|p| loop {
            items.push(p.expression()?);
            if p.take_if(close)? {
                return Ok(());
            }
            p.expect(',', &format!("',' or '{close}'"))?;
        })?;
        Ok(items)
    }

    fn expression(&mut self) -> Result<Expr, Error> {
        let left = self.alternatives(true)?;
        if matches!(left, Expr::Word(_) | Expr::Apply(..)) && self.take_if('=')? {
            let right = self.alternatives(true)?;
            return Ok(Expr::Assign(Box::new(left), Box::new(right)));
        }
        Ok(left)
    }

    /// Parse `a|b|c`. `applies`: whether a word may have arguments; after a result, parentheses enclose a remark.
    fn alternatives(&mut self, applies: bool) -> Result<Expr, Error> {
        let first = self.primary(applies)?;
        if !self.peek()?.is('|') {
            return Ok(first);
        }
        let mut all = vec![first];
        while self.take_if('|')? {
            all.push(self.primary(applies)?);
        }
        Ok(Expr::Or(all))
    }

    fn primary(&mut self, applies: bool) -> Result<Expr, Error> {
        let token = self.next()?;
        Ok(match token.kind {
            Kind::Integer => Expr::Int(token.text.parse().map_err(|_| beyond(&token))?),
            Kind::Hex => Expr::Hex(u64::from_str_radix(&token.text[2..], 16).map_err(|_| beyond(&token))?),
            Kind::Word if applies && self.peek()?.is('(') => {
                self.next()?;
                Expr::Apply(token.text.to_string(), self.list(')')?)
            }
            Kind::Word => Expr::Word(token.text.to_string()),
            Kind::Text => {
                let mut parts = vec![token.text.to_string()];
                while self.peek()?.kind == Kind::Text {
                    parts.push(self.next()?.text.to_string());
                }
                Expr::Text(parts)
            }
            Kind::Ellipsis => Expr::Ellipsis,
            Kind::Symbol('[') => Expr::List(self.list(']')?),
            Kind::Symbol('{') => {
                let items = self.list('}')?;
                if shape::of(&items).is_none() {
                    return Err(Error::unsupported(token.at, "a structure with these fields"));
                }
                Expr::Braces(items)
            }
            Kind::Float => return Err(Error::unsupported(token.at, "a fractional number in an expression")),
            Kind::Symbol(c @ ('&' | '~' | '!' | '*' | '+' | '-' | '/' | '^' | '%')) => {
                return Err(Error::unsupported(token.at, format_args!("operator '{c}'")))
            }
            _ => return Err(unexpected(&token, "a number, a word, a string, '...', '[' or '{'")),
        })
    }
}

fn beyond(token: &Token<'_>) -> Error {
    Error::value(token.at, "number", token.text, "64 bits")
}
