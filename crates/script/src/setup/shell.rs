//! Splits a command's text into simple commands: words, quotation marks, `;`, `&&`, redirections. Constructs
//! that need a shell to be understood (pipes, substitutions, loops) are rejected by name.

/// A simple command.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Simple {
    /// Command and arguments, without quotation marks.
    pub words: Vec<String>,
    /// File to which standard output is redirected.
    pub output: Option<String>,
}

#[derive(PartialEq, Eq, Clone, Copy)]
enum Redirect {
    No,
    Output,
    Other,
}

/// Return the simple commands in order, or the unsupported construct.
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
                        Some('$') if chars.peek() == Some(&'(') => {
                            let rest: String = chars.clone().collect();
                            let (value, used) = arithmetic(&rest)?;
                            for _ in 0..used {
                                chars.next();
                            }
                            word.push_str(&value.to_string());
                        }
                        Some(c) => word.push(c),
                        None => return Err("shell text with an open quotation mark".into()),
                    }
                }
            }
            '$' if chars.peek() == Some(&'(') => {
                let rest: String = chars.clone().collect();
                let (value, used) = arithmetic(&rest)?;
                for _ in 0..used {
                    chars.next();
                }
                word.get_or_insert_with(String::new).push_str(&value.to_string());
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
                    redirect = Redirect::Other; // to another file descriptor
                }
            }
            ';' | '\n' | '&' | '|' => {
                let double = chars.next_if_eq(&c).is_some();
                let rest: String = chars.clone().take_while(|c| !";&|\n".contains(*c)).collect();
                if c == '|' && double && matches!(rest.trim(), "true" | ":") {
                    // `|| true`: the result is ignored
                    end_word(&mut word, &mut current, &mut redirect);
                    end_command(&mut all, &mut current);
                    continue;
                }
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

/// Evaluate `((...))` at the start of a string that follows a `$`: whole numbers, `+ - * /`, parentheses. Returns the
/// value and the number of characters consumed.
fn arithmetic(text: &str) -> Result<(i64, usize), String> {
    let refuse = || "shell substitution '$('".to_string();
    let inner = text.strip_prefix("((").ok_or_else(refuse)?;
    let end = inner.find("))").ok_or_else(refuse)?;
    // A closing parenthesis of the expression may directly precede the two of the substitution.
    let end = end + inner[end..].chars().take_while(|c| *c == ')').count() - 2;
    let body: Vec<char> = inner[..end].chars().filter(|c| !c.is_whitespace()).collect();
    let mut at = 0;
    let value = sum(&body, &mut at, 0).filter(|_| at == body.len()).ok_or_else(refuse)?;
    Ok((value, 2 + inner[..end].chars().count() + 2))
}

fn sum(text: &[char], at: &mut usize, depth: usize) -> Option<i64> {
    let mut value = product(text, at, depth)?;
    while let Some(sign @ ('+' | '-')) = text.get(*at) {
        *at += 1;
        let next = product(text, at, depth)?;
        value = if *sign == '+' { value.checked_add(next)? } else { value.checked_sub(next)? };
    }
    Some(value)
}

fn product(text: &[char], at: &mut usize, depth: usize) -> Option<i64> {
    let mut value = factor(text, at, depth)?;
    while let Some(sign @ ('*' | '/')) = text.get(*at) {
        *at += 1;
        let next = factor(text, at, depth)?;
        value = if *sign == '*' { value.checked_mul(next)? } else { value.checked_div(next)? };
    }
    Some(value)
}

fn factor(text: &[char], at: &mut usize, depth: usize) -> Option<i64> {
    const MAX_DEPTH: usize = 16;
    if text.get(*at) == Some(&'(') && depth < MAX_DEPTH {
        *at += 1;
        let value = sum(text, at, depth + 1)?;
        (text.get(*at) == Some(&')')).then_some(())?;
        *at += 1;
        return Some(value);
    }
    let digits: String = text[*at..].iter().take_while(|c| c.is_ascii_digit()).collect();
    *at += digits.len();
    digits.parse().ok()
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
    fn arithmetic_is_done() {
        assert_eq!(
            words("a \"1 $((15*1024*1024))\" $((1+2*(3+4)-6/2)) x$((7))y"),
            [vec!["a", "1 15728640", "12", "x7y"]]
        );
        for text in ["$((1/0))", "$((9223372036854775807+1))", "$(ls)", "$((a))", "$((1", "$(((1)"] {
            assert!(split(text).is_err(), "{text}");
        }
        assert_eq!(words("a || true; b"), [vec!["a"], vec!["true"], vec!["b"]]);
    }

    #[test]
    fn what_needs_a_shell_is_refused() {
        for text in ["a | b", "a || b", "a & b", "'open", "\"open"] {
            assert!(split(text).is_err(), "{text}");
        }
    }
}
