//! Digests of runs, for machines on which no other part of the project runs. Reads lines of `SEED JSON` and prints a
//! digest for each. `tools/foreign.py` builds this program for other processors and runs it under emulation.

use std::io::{self, BufRead, Write};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut out = io::stdout().lock();
    for line in io::stdin().lock().lines() {
        let line = line?;
        let (seed, text) = line.split_once(' ').ok_or("found a line without a blank; allowed: SEED JSON")?;
        let outcome = ackclock_sim::run(&ackclock_sim::parse(text)?, seed.parse()?)?;
        writeln!(out, "{}", outcome.digest.hex())?;
    }
    Ok(())
}
