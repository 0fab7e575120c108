//! Reads a script from a file, up to the size limit.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::error::{Error, Pos};
use crate::parser::Limits;

/// Return the text of a script file. Bytes that are not UTF-8 become U+FFFD: harmless in comments, rejected by the
/// parser elsewhere.
pub fn read(path: &Path, limits: &Limits) -> Result<String, Error> {
    let refuse = |why: String| Error::File { path: path.display().to_string(), why };
    let file = File::open(path).map_err(|e| refuse(e.to_string()))?;
    let kind = file.metadata().map_err(|e| refuse(e.to_string()))?;
    if !kind.is_file() {
        return Err(refuse("not a regular file".into())); // a pipe or a device may be endless
    }
    let mut bytes = Vec::new();
    let limit = limits.bytes as u64;
    file.take(limit + 1).read_to_end(&mut bytes).map_err(|e| refuse(e.to_string()))?;
    if bytes.len() as u64 > limit {
        return Err(Error::Limit { at: Pos { line: 1, column: 1 }, what: "bytes of the file", limit });
    }
    Ok(String::from_utf8(bytes).unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned()))
}
