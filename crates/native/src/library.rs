//! A shared library, opened once and never closed, because its threads and signal handlers may outlive all
//! controllers.

use std::ffi::{c_char, c_int, c_void, CStr, CString};

use crate::abi::{CController, Entry, ABI};

/// The controller in a library.
#[derive(Clone, Copy)]
pub struct Library {
    pub(crate) hooks: CController,
    pub(crate) name: &'static str,
    pub(crate) variables: &'static str,
    reads: &'static str,
}

// SAFETY: the structure's targets are constant; the interface lets hooks of several connections run at once.
unsafe impl Send for Library {}
// SAFETY: the same.
unsafe impl Sync for Library {}

#[cfg(unix)]
mod system {
    use super::{c_char, c_int, c_void};

    extern "C" {
        pub fn dlopen(path: *const c_char, flags: c_int) -> *mut c_void;
        pub fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
        pub fn dlerror() -> *const c_char;
    }
    /// RTLD_NOW.
    pub const AT_ONCE: c_int = 2;
}

#[cfg(unix)]
fn open(path: &CStr) -> Result<Entry, String> {
    // SAFETY: zero-terminated texts; the loader's message is read before the next call.
    unsafe {
        let said = || {
            let text = system::dlerror();
            match text.is_null() {
                true => "no reason is given".to_string(),
                false => CStr::from_ptr(text).to_string_lossy().into_owned(),
            }
        };
        let library = system::dlopen(path.as_ptr(), system::AT_ONCE);
        if library.is_null() {
            return Err(format!("found a library that cannot be loaded ({})", said()));
        }
        let entry = system::dlsym(library, c"ackclock_controller".as_ptr());
        if entry.is_null() {
            return Err("found no function ackclock_controller in it".to_string());
        }
        // The interface requires a symbol of this name to be a function of this type.
        Ok(std::mem::transmute::<*mut c_void, Entry>(entry))
    }
}

#[cfg(not(unix))]
fn open(_: &CStr) -> Result<Entry, String> {
    Err("found a system where libraries are not loaded; allowed: Linux and macOS".to_string())
}

impl Library {
    /// Load the library at `path` and initialise it with `options`, lines of the form NAME=VALUE.
    pub fn load(path: &str, options: &str) -> Result<Library, String> {
        let plain = |text: &str| CString::new(text).map_err(|_| "found a zero in a name".to_string());
        let (path, options) = (plain(path)?, plain(options)?);
        let entry = open(&path)?;
        let mut why = [0_u8; 400];
        // SAFETY: a zero-terminated text, and a buffer of the given length.
        let hooks = unsafe { entry(options.as_ptr(), why.as_mut_ptr().cast::<c_char>(), why.len()) };
        if hooks.is_null() {
            why[why.len() - 1] = 0;
            let said = CStr::from_bytes_until_nul(&why).unwrap_or_default();
            return Err(said.to_string_lossy().into_owned());
        }
        // SAFETY: the version is the first field of every version of the structure.
        let found = unsafe { hooks.cast::<u32>().read() };
        if found != ABI {
            return Err(format!(
                "found a library of version {found} of ackclock_controller.h; allowed: version {ABI}, with whose header it is to be compiled"
            ));
        }
        // SAFETY: a structure of this version, which lives as long as the library: for ever.
        let hooks = unsafe { *hooks };
        let required = [
            ("open", hooks.open.is_some()),
            ("close", hooks.close.is_some()),
            ("said", hooks.said.is_some()),
            ("ssthresh", hooks.ssthresh.is_some()),
            ("on_ack or on_control", hooks.on_ack.is_some() || hooks.on_control.is_some()),
        ];
        if let Some((missing, _)) = required.into_iter().find(|(_, there)| !there) {
            return Err(format!("found no {missing} in it"));
        }
        Ok(Library {
            hooks,
            name: text(hooks.name),
            variables: text(hooks.variables),
            reads: text(hooks.reads),
        })
    }

    /// Name of the controller, given by the library.
    pub fn name(&self) -> &'static str {
        self.name
    }
}

impl Library {
    /// Files read by the library's controllers.
    pub fn reads(&self) -> impl Iterator<Item = &'static str> {
        self.reads.split(',').filter(|name| !name.is_empty())
    }
}

/// Read a constant of the library.
fn text(constant: *const c_char) -> &'static str {
    if constant.is_null() {
        return "";
    }
    // SAFETY: it ends with a zero and lives as long as the library.
    unsafe { CStr::from_ptr(constant) }.to_str().unwrap_or_default()
}
