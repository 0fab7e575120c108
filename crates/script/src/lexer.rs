//! Splits text into tokens, one at a time, each with its position. Keywords are returned as words: whether a word is
//! a keyword depends on its position, which only the parser knows. Every character is read once.

use winnow::combinator::{alt, delimited, opt, preceded, repeat};
use winnow::error::EmptyError;
use winnow::prelude::*;
use winnow::stream::AsChar;
use winnow::token::{any, literal, one_of, take_until, take_while};

use crate::error::{shorten, Error, Pos};

type Lexed<T> = Result<T, EmptyError>;

/// Kind of a token.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// `--name`; the text is the name.
    Option,
    /// Digits, with an optional minus sign.
    Integer,
    /// `0x` and hexadecimal digits.
    Hex,
    /// Digits around or after a decimal point, with an optional minus sign.
    Float,
    /// Letters, digits, underscores.
    Word,
    /// Text between quotation marks, with escapes as written.
    Text,
    /// Text between back-quotes.
    Command,
    /// Text between `%{` and `}%`.
    Code,
    /// `...`
    Ellipsis,
    /// Any other character.
    Symbol(char),
    /// End of the text.
    End,
}

/// A token.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Token<'s> {
    /// Kind of the token.
    pub kind: Kind,
    /// Text of the token, without its delimiters.
    pub text: &'s str,
    /// Position.
    pub at: Pos,
}

impl Token<'_> {
    /// Whether the token is the character `c`.
    pub fn is(&self, c: char) -> bool {
        self.kind == Kind::Symbol(c)
    }
    /// Whether the token is the word `w`.
    pub fn is_word(&self, w: &str) -> bool {
        self.kind == Kind::Word && self.text == w
    }
    /// The token as shown in messages.
    pub fn shown(&self) -> String {
        let text = shorten(self.text);
        match self.kind {
            Kind::End => "the end of the file".into(),
            Kind::Option => format!("the option --{text}"),
            Kind::Text => format!("\"{text}\""),
            Kind::Command => format!("the command `{text}`"),
            Kind::Code => "a code block".into(),
            _ => format!("'{text}'"),
        }
    }
}

/// Reader that takes tokens from the start of a text.
#[derive(Clone)]
pub struct Lexer<'s> {
    rest: &'s str,
    at: Pos,
}

impl<'s> Lexer<'s> {
    /// Return a lexer at the start of the text, after any byte-order mark.
    pub fn new(text: &'s str) -> Lexer<'s> {
        Lexer { rest: text.strip_prefix('\u{feff}').unwrap_or(text), at: Pos { line: 1, column: 1 } }
    }

    /// Take the next token.
    pub fn next(&mut self) -> Result<Token<'s>, Error> {
        self.skip_blank()?;
        let at = self.at;
        let before = self.rest;
        let mut input = before;
        let (kind, text) =
            token(&mut input).map_err(|EmptyError| Error::syntax(at, opening(before), "its end"))?;
        self.advance(before.len() - input.len());
        Ok(Token { kind, text, at })
    }

    /// Take the value of an option: a quoted string, or everything up to the next blank or comment. Only options
    /// contain addresses, so the rest of the language does not have to distinguish them from sequence numbers.
    pub fn next_value(&mut self) -> Result<Token<'s>, Error> {
        self.skip_blank()?;
        let text = unquoted(&mut { self.rest }).unwrap_or("");
        let text =
            ["//", "/*"].iter().filter_map(|mark| text.find(mark)).min().map_or(text, |end| &text[..end]);
        if text.is_empty() {
            return self.next();
        }
        let at = self.at;
        self.advance(text.len());
        Ok(Token { kind: Kind::Word, text, at })
    }

    fn skip_blank(&mut self) -> Result<(), Error> {
        loop {
            let before = self.rest;
            let mut input = before;
            blank(&mut input).map_err(|EmptyError| Error::syntax(self.at, "'/*'", "its end, '*/'"))?;
            if input.len() == before.len() {
                return Ok(());
            }
            self.advance(before.len() - input.len());
        }
    }

    fn advance(&mut self, bytes: usize) {
        let (past, rest) = self.rest.split_at(bytes);
        for c in past.chars() {
            if c == '\n' {
                self.at.line = self.at.line.saturating_add(1);
                self.at.column = 1;
            } else {
                self.at.column = self.at.column.saturating_add(1);
            }
        }
        self.rest = rest;
    }
}

/// Opening delimiter of an unterminated string or block.
fn opening(text: &str) -> &'static str {
    match text.as_bytes().first() {
        Some(b'"') => "'\"'",
        Some(b'`') => "'`'",
        _ => "'%{'",
    }
}

/// Match blanks, or one comment, or nothing. Fails on an unterminated comment.
fn blank<'s>(input: &mut &'s str) -> Lexed<&'s str> {
    if input.starts_with("//") {
        return take_while(0.., |c| c != '\n').parse_next(input);
    }
    if input.starts_with("/*") {
        return ("/*", take_until(0.., "*/"), "*/").take().parse_next(input);
    }
    take_while(0.., char::is_whitespace).parse_next(input)
}

fn token<'s>(input: &mut &'s str) -> Lexed<(Kind, &'s str)> {
    match (input.chars().next(), input.chars().nth(1)) {
        (None, _) => Ok((Kind::End, "")),
        (Some('"'), _) => delimited('"', text_body, '"').map(|t| (Kind::Text, t)).parse_next(input),
        (Some('`'), _) => {
            delimited('`', take_until(0.., '`'), '`').map(|t| (Kind::Command, t)).parse_next(input)
        }
        (Some('%'), Some('{')) => {
            delimited("%{", take_until(0.., "}%"), "}%").map(|t| (Kind::Code, t)).parse_next(input)
        }
        _ => alt((
            preceded("--", word).map(|t| (Kind::Option, t)),
            literal("...").map(|t| (Kind::Ellipsis, t)),
            float.map(|t| (Kind::Float, t)),
            ('-', digits).take().map(|t| (Kind::Integer, t)),
            word.map(|t| (kind_of_word(t), t)),
            any.take().map(|t: &str| (Kind::Symbol(t.chars().next().unwrap_or(' ')), t)),
        ))
        .parse_next(input),
    }
}

fn word<'s>(input: &mut &'s str) -> Lexed<&'s str> {
    take_while(1.., |c: char| c.is_ascii_alphanumeric() || c == '_').parse_next(input)
}

/// Match characters permitted in an option's value without quotation marks.
fn unquoted<'s>(input: &mut &'s str) -> Lexed<&'s str> {
    take_while(0.., |c: char| c.is_ascii_alphanumeric() || "_.:/,+%@~-=".contains(c)).parse_next(input)
}

fn digits<'s>(input: &mut &'s str) -> Lexed<&'s str> {
    take_while(1.., AsChar::is_dec_digit).parse_next(input)
}

fn float<'s>(input: &mut &'s str) -> Lexed<&'s str> {
    (opt('-'), take_while(0.., AsChar::is_dec_digit), '.', digits).take().parse_next(input)
}

fn text_body<'s>(input: &mut &'s str) -> Lexed<&'s str> {
    let plain = take_while(1.., |c| c != '"' && c != '\\').void();
    let escape = (one_of('\\'), any).void();
    repeat::<_, _, (), _, _>(0.., alt((plain, escape))).take().parse_next(input)
}

/// Return the kind of the longest run of letters and digits: `0x1f` is a number, `0x1g` and `12ab` are words.
fn kind_of_word(text: &str) -> Kind {
    if text.bytes().all(|b| b.is_ascii_digit()) {
        return Kind::Integer;
    }
    match text.strip_prefix("0x") {
        Some(hex) if !hex.is_empty() && hex.bytes().all(|b| b.is_ascii_hexdigit()) => Kind::Hex,
        _ => Kind::Word,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<(Kind, &str)> {
        let mut lexer = Lexer::new(text);
        let mut all = Vec::new();
        loop {
            let t = lexer.next().unwrap();
            if t.kind == Kind::End {
                return all;
            }
            all.push((t.kind, t.text));
        }
    }

    #[test]
    fn points_numbers_and_ellipses_are_told_apart() {
        use Kind::*;
        assert_eq!(kinds("0...0.200"), [(Integer, "0"), (Ellipsis, "..."), (Float, "0.200")]);
        assert_eq!(
            kinds("+.5...+1"),
            [(Symbol('+'), "+"), (Float, ".5"), (Ellipsis, "..."), (Symbol('+'), "+"), (Integer, "1")]
        );
        assert_eq!(kinds("P5. F.5"), [(Word, "P5"), (Symbol('.'), "."), (Word, "F"), (Float, ".5")]);
        assert_eq!(kinds("- -1 -0.5"), [(Symbol('-'), "-"), (Integer, "-1"), (Float, "-0.5")]);
        assert_eq!(
            kinds("0x1f 0x 12ab --dry_run"),
            [(Hex, "0x1f"), (Word, "0x"), (Word, "12ab"), (Option, "dry_run")]
        );
    }

    #[test]
    fn marks_enclose_anything_but_themselves() {
        use Kind::*;
        assert_eq!(
            kinds(r#""a\"b" `x "y` %{ "z" % }%"#),
            [(Text, r#"a\"b"#), (Command, "x \"y"), (Code, " \"z\" % ")]
        );
        assert_eq!(kinds("1 // `\n/* \" */ 2"), [(Integer, "1"), (Integer, "2")]);
    }

    #[test]
    fn what_does_not_end_is_an_error_at_its_start() {
        for text in ["\n  \"abc", "\n  `abc", "\n  %{ a }", "\n  /* a", "\n  \"abc\\"] {
            let error = Lexer::new(text).next().unwrap_err();
            assert_eq!(error.at(), Pos { line: 2, column: 3 }, "{text}: {error}");
        }
    }

    #[test]
    fn places_count_characters() {
        let mut lexer = Lexer::new("\u{feff}é ab\n\tc");
        assert_eq!(lexer.next().unwrap().at, Pos { line: 1, column: 1 });
        assert_eq!(lexer.next().unwrap().at, Pos { line: 1, column: 3 });
        assert_eq!(lexer.next().unwrap().at, Pos { line: 2, column: 2 });
    }

    #[test]
    fn values_of_options_may_be_addresses() {
        let mut lexer = Lexer::new("fd00::1:2//x\n192.0.2.1/24 \"a b\"");
        assert_eq!(lexer.next_value().unwrap().text, "fd00::1:2");
        assert_eq!(lexer.next_value().unwrap().text, "192.0.2.1/24");
        assert_eq!(lexer.next_value().unwrap().kind, Kind::Text);
    }
}
