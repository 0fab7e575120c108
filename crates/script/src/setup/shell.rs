//! Text of a command into simple commands: words, quotation marks, `;`, `&&`, redirections. Whatever would need a shell
//! to know what it means (pipes, substitutions, loops) is refused by name.

/// One command and its words.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Simple {
    /// Command and arguments, quotation marks removed.
    pub words: Vec<String>,
    /// File that standard output goes to.
    pub output: Option<String>,
}

#[derive(PartialEq, Eq, Clone, Copy)]
enum Redirect {
    No,
    Output,
    Other,
}

/// The simple commands in order, or what is beyond this reader.
pub fn split(text: &str) -> Result<Vec<Simple>, String> {
    let mut all = Vec::new();
    let mut current = Simple::default();
    let mut word: Option<String> = None;
    let mut redirect = Redirect::No;
    let mut chars = text.chars().peekable();
    let end_word = |word: &mut Option<String>, current: &mut Simple, redirect: &mut Redirect| {
        if let Some(word) = word.take() {
            match std::mem::replace(redirect, Redirect::No) {
                Redirect::No => current.words.push(word),
                Redirect::Output => current.output = Some(word),
                Redirect::Other => {}
            }
        }
    };
    while let Some(c) = chars.next() {
        match c {
            '\'' => {
                let word = word.get_or_insert_with(String::new);
                loop {
                    match chars.next() {
                        Some('\'') => break,
                        Some(c) => word.push(c),
                        None => return Err("shell text with an open quotation mark".into()),
                    }
                }
            }
            '"' => {
                let word = word.get_or_insert_with(String::new);
                loop {
                    match chars.next() {
                        Some('"') => break,
                        Some('\\') => word.extend(chars.next()),
                        Some(c) => word.push(c),
                        None => return Err("shell text with an open quotation mark".into()),
                    }
                }
            }
            '\\' => match chars.next() {
                Some('\n') | None => {}
                Some(c) => word.get_or_insert_with(String::new).push(c),
            },
            '#' if word.is_none() => while chars.next_if(|c| *c != '\n').is_some() {},
            '>' | '<' => {
                // `2>`: the digit belongs to the redirection.
                let errors = word.as_deref() == Some("2");
                if errors || word.as_deref() == Some("1") {
                    word = None;
                }
                end_word(&mut word, &mut current, &mut redirect);
                chars.next_if_eq(&'>');
                redirect = if c == '>' && !errors { Redirect::Output } else { Redirect::Other };
                if chars.next_if_eq(&'&').is_some() {
                    redirect = Redirect::Other; // to another stream
                }
            }
            ';' | '\n' | '&' | '|' => {
                let double = chars.next_if_eq(&c).is_some();
                if c == '|' || (c == '&' && !double) {
                    return Err(format!("shell operator '{}'", String::from(c).repeat(1 + double as usize)));
                }
                end_word(&mut word, &mut current, &mut redirect);
                end_command(&mut all, &mut current);
            }
            c if c.is_whitespace() => end_word(&mut word, &mut current, &mut redirect),
            c => word.get_or_insert_with(String::new).push(c),
        }
    }
    end_word(&mut word, &mut current, &mut redirect);
    end_command(&mut all, &mut current);
    Ok(all)
}

fn end_command(all: &mut Vec<Simple>, current: &mut Simple) {
    let simple = std::mem::take(current);
    if !simple.words.is_empty() {
        all.push(simple);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<Vec<String>> {
        split(text).unwrap().into_iter().map(|s| s.words).collect()
    }

    #[test]
    fn commands_words_and_marks() {
        assert_eq!(
            words("a b='c  d' # x;y\n e \"f \\\" g\"; h && i\\\n j"),
            [vec!["a", "b=c  d"], vec!["e", "f \" g"], vec!["h"], vec!["i", "j"]]
        );
        assert!(words(" \n ; # nothing\n").is_empty());
    }

    #[test]
    fn redirections_are_no_words() {
        let all = split("echo 3 > /x/y; foo >/dev/null 2>&1; bar 2> z w; baz < in").unwrap();
        let seen: Vec<(usize, Option<&str>)> =
            all.iter().map(|s| (s.words.len(), s.output.as_deref())).collect();
        assert_eq!(seen, [(2, Some("/x/y")), (1, Some("/dev/null")), (2, None), (1, None)]);
    }

    #[test]
    fn what_needs_a_shell_is_refused() {
        for text in ["a | b", "a || b", "a & b", "'open", "\"open"] {
            assert!(split(text).is_err(), "{text}");
        }
    }
}
