//! Packet scripts: any text yields a verdict or a short one-line error. A valid script is unchanged by printing and
//! parsing, and playing it terminates.

use ackclock_script::{parse, play as run, Limits, Pos, Profile, Script, Setup};

/// Read the bytes as a script and play it. Return whether they are a valid script.
pub fn play(data: &[u8]) -> bool {
    let text = String::from_utf8_lossy(data);
    let limits = Limits { events: 1_000, ..Limits::default() };
    let _ = Setup::kernel().apply(&text, Pos::default());
    let script = match parse(&text, &[], &limits) {
        Ok(script) => script,
        Err(error) => {
            short(&error.to_string());
            return false;
        }
    };
    let printed = script.to_string();
    let again = parse(&printed, &[], &limits).unwrap_or_else(|e| panic!("{e}\n{printed}"));
    assert!(without_places(again) == without_places(script.clone()), "reads differently:\n{printed}");
    let hz = [1000, 0, 100, 250][data.len() % 4];
    if let Err(error) = run(&script, &Profile { hz, ..Profile::default() }) {
        short(&error.to_string());
    }
    true
}

fn short(message: &str) {
    assert!(message.chars().count() < 400 && !message.contains(['\n', '\u{1b}', '\0']), "{message:?}");
}

fn without_places(mut script: Script) -> Script {
    script.options.iter_mut().for_each(|o| o.at = Pos::default());
    script.init.iter_mut().chain(&mut script.cleanup).for_each(|c| c.at = Pos::default());
    script.events.iter_mut().for_each(|e| e.at = Pos::default());
    script
}
