//! The user's programs: the files visible to them, and their processes. Between `fork` and `exec`, no function is
//! called that might need a lock held by another thread.

use std::ffi::CString;
use std::io::{Error, PipeReader, PipeWriter, Read, Result, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use super::{check, text};

/// A program's view: its own mount namespace, host name and message queues.
pub struct View {
    mounts: OwnedFd,
    names: OwnedFd,
    queues: OwnedFd,
}

/// A program to be started.
pub struct Command {
    /// Path of the executable.
    pub file: CString,
    /// Name and arguments.
    pub arguments: Vec<CString>,
    /// Environment, entries NAME=VALUE.
    pub environment: Vec<CString>,
    /// Working directory.
    pub folder: CString,
    /// Files for stdout and stderr.
    pub outputs: [OwnedFd; 2],
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Ended {
    /// Exited with this code.
    Exited(i32),
    /// Killed by this signal.
    Killed(i32),
}

/// Mount with flags and options; an empty `kind` means no filesystem type.
pub fn mount_with(source: &str, target: &str, kind: &str, flags: u64, options: &str) -> Result<()> {
    let [source_c, target_c, kind_c, options_c] = [source, target, kind, options].map(text);
    let kind_at = if kind.is_empty() { std::ptr::null() } else { kind_c.as_ptr() };
    let done = unsafe {
        libc::mount(source_c.as_ptr(), target_c.as_ptr(), kind_at, flags, options_c.as_ptr().cast())
    };
    check(done, &format!("mount {kind} at {target}")).map(drop)
}

/// Create a character device.
pub fn device(path: &str, major: u32, minor: u32) -> Result<()> {
    let path_c = text(path);
    let made = unsafe { libc::mknod(path_c.as_ptr(), libc::S_IFCHR | 0o666, libc::makedev(major, minor)) };
    check(made, path)?;
    check(unsafe { libc::chmod(path_c.as_ptr(), 0o666) }, path).map(drop)
}

/// Create a view in a child process with separate namespaces: `lay` mounts everything below `root`, which becomes `/`.
/// The process must still be single-threaded.
pub fn view(host: &str, network: RawFd, root: &str, lay: impl FnOnce() -> Result<()>) -> Result<View> {
    let (mut told, tell) = std::io::pipe()?;
    let (hold, mut go) = std::io::pipe()?;
    let child = check(unsafe { libc::fork() }, "fork")?;
    if child == 0 {
        drop(go);
        let done = inside(host, network, root, lay);
        let mut tell = tell;
        let _ = tell.write_all(done.err().map(|error| error.to_string()).unwrap_or_default().as_bytes());
        drop(tell);
        let _ = (&hold).read(&mut [0]);
        unsafe { libc::_exit(0) };
    }
    drop((tell, hold));
    let mut said = String::new();
    told.read_to_string(&mut said)?;
    let found = if said.is_empty() {
        let open = |what: &str| -> Result<OwnedFd> {
            let path = text(&format!("/proc/{child}/ns/{what}"));
            let fd = unsafe { libc::open(path.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) };
            Ok(unsafe { OwnedFd::from_raw_fd(check(fd, what)?) })
        };
        open("mnt").and_then(|mounts| Ok(View { mounts, names: open("uts")?, queues: open("ipc")? }))
    } else {
        Err(Error::other(format!("{host}: {said}")))
    };
    let _ = go.write_all(&[0]);
    unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
    found
}

fn inside(host: &str, network: RawFd, root: &str, lay: impl FnOnce() -> Result<()>) -> Result<()> {
    let apart = libc::CLONE_NEWNS | libc::CLONE_NEWUTS | libc::CLONE_NEWIPC;
    check(unsafe { libc::unshare(apart) }, "unshare")?;
    check(unsafe { libc::setns(network, libc::CLONE_NEWNET) }, "setns")?;
    check(unsafe { libc::sethostname(text(host).as_ptr(), host.len()) }, "sethostname")?;
    mount_with("none", "/", "", libc::MS_REC | libc::MS_PRIVATE, "")?;
    lay()?;
    let (root_c, here) = (text(root), text("."));
    check(unsafe { libc::chdir(root_c.as_ptr()) }, "chdir")?;
    let pivot = unsafe { libc::syscall(libc::SYS_pivot_root, here.as_ptr(), here.as_ptr()) };
    check(pivot as libc::c_int, "pivot_root")?;
    check(unsafe { libc::umount2(here.as_ptr(), libc::MNT_DETACH) }, "umount")?;
    check(unsafe { libc::chdir(text("/").as_ptr()) }, "chdir").map(drop)
}

/// A child process that executes a program on request. It is forked before this process maps the packet rings, because
/// the kernel cannot use a copy of such a mapping.
pub struct Waiting {
    child: i32,
    go: PipeWriter,
    told: PipeReader,
}

/// Prepare a program in a view and a network namespace; it leads a new session.
pub fn prepare(view: &View, network: RawFd, command: &Command) -> Result<Waiting> {
    let pointers = |of: &[CString]| -> Vec<*const libc::c_char> {
        of.iter().map(|one| one.as_ptr()).chain([std::ptr::null()]).collect()
    };
    let (arguments, environment) = (pointers(&command.arguments), pointers(&command.environment));
    let (told, tell) = std::io::pipe()?; // closed by `exec`
    let (hold, go) = std::io::pipe()?;
    let null = text("/dev/null");
    let root = text("/");
    let child = check(unsafe { libc::fork() }, "fork")?;
    if child == 0 {
        let mut byte = 0u8;
        let code = unsafe {
            libc::read(hold.as_raw_fd(), std::ptr::from_mut(&mut byte).cast(), 1);
            become_it(view, network, command, &null, &root);
            libc::execve(command.file.as_ptr(), arguments.as_ptr(), environment.as_ptr());
            *libc::__errno_location()
        };
        unsafe {
            libc::write(tell.as_raw_fd(), std::ptr::from_ref(&code).cast(), size_of::<i32>());
            libc::_exit(127)
        };
    }
    Ok(Waiting { child, go, told })
}

/// Let the waiting process execute its program; returns its process id.
pub fn start(waiting: Waiting) -> Result<i32> {
    let Waiting { child, mut go, mut told } = waiting;
    go.write_all(&[0])?;
    let mut code = Vec::new();
    told.read_to_end(&mut code)?;
    match <[u8; 4]>::try_from(&code[..]) {
        Ok(code) => Err(Error::from_raw_os_error(i32::from_ne_bytes(code))),
        Err(_) => Ok(child),
    }
}

/// Set up the child. A failure here only becomes apparent when the program is executed, or in the program itself.
unsafe fn become_it(view: &View, network: RawFd, command: &Command, null: &CString, root: &CString) {
    // SAFETY: system calls alone, on descriptors and texts that the parent holds.
    unsafe {
        libc::setsid();
        libc::setns(network, libc::CLONE_NEWNET);
        libc::setns(view.names.as_raw_fd(), libc::CLONE_NEWUTS);
        libc::setns(view.queues.as_raw_fd(), libc::CLONE_NEWIPC);
        libc::dup2(command.outputs[0].as_raw_fd(), 1);
        libc::dup2(command.outputs[1].as_raw_fd(), 2);
        libc::setns(view.mounts.as_raw_fd(), libc::CLONE_NEWNS);
        let nothing = libc::open(null.as_ptr(), libc::O_RDONLY);
        libc::dup2(nothing, 0);
        libc::syscall(libc::SYS_close_range, 3, 1 << 20, libc::CLOSE_RANGE_CLOEXEC);
        if libc::chdir(command.folder.as_ptr()) != 0 {
            libc::chdir(root.as_ptr());
        }
        libc::umask(0o022);
        for (what, least, most) in LIMITS {
            libc::setrlimit(*what, &libc::rlimit { rlim_cur: *least, rlim_max: *most });
        }
        for capability in 0..64 {
            if KEPT >> capability & 1 == 0 {
                libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0);
            }
        }
        for signal in 1..=64 {
            libc::signal(signal, libc::SIG_DFL);
        }
        let mut all: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut all);
        libc::sigprocmask(libc::SIG_SETMASK, &all, std::ptr::null_mut());
    }
}

/// Resource limits of a program: file size, open files, stack, no core dumps.
const LIMITS: &[(libc::__rlimit_resource_t, u64, u64)] = &[
    (libc::RLIMIT_FSIZE, LONGEST_FILE, LONGEST_FILE),
    (libc::RLIMIT_NOFILE, 1024, 1 << 19),
    (libc::RLIMIT_STACK, 8 << 20, libc::RLIM_INFINITY),
    (libc::RLIMIT_CORE, 0, 0),
];
/// Maximum size of a file written by a program, bytes.
pub const LONGEST_FILE: u64 = 256 << 20;

/// Capabilities of a program as root on its host: own files (CHOWN, DAC_OVERRIDE, FOWNER, FSETID), signals (KILL),
/// change its user (SETGID, SETUID, SETPCAP), the network (NET_BIND_SERVICE, NET_ADMIN, NET_RAW), chroot. None of these
/// opens another way to the machine's files: programs cannot mount, create devices, or inspect other processes.
const KEPT: u64 =
    1 | 1 << 1 | 1 << 3 | 1 << 4 | 1 << 5 | 1 << 6 | 1 << 7 | 1 << 8 | 1 << 10 | 1 << 12 | 1 << 13 | 1 << 18;

/// Create a descriptor that is readable when a child has ended. Threads created later do not receive the signal.
pub fn children() -> Result<OwnedFd> {
    let mut wanted: libc::sigset_t = unsafe { std::mem::zeroed() };
    unsafe { libc::sigemptyset(&mut wanted) };
    unsafe { libc::sigaddset(&mut wanted, libc::SIGCHLD) };
    check(unsafe { libc::sigprocmask(libc::SIG_BLOCK, &wanted, std::ptr::null_mut()) }, "sigprocmask")?;
    let fd = unsafe { libc::signalfd(-1, &wanted, libc::SFD_NONBLOCK | libc::SFD_CLOEXEC) };
    Ok(unsafe { OwnedFd::from_raw_fd(check(fd, "signalfd")?) })
}

/// Collect a child that has ended; `None` if there is none.
pub fn reap() -> Option<(i32, Ended)> {
    let mut status = 0;
    let child = unsafe { libc::waitpid(-1, &mut status, libc::WNOHANG) };
    (child > 0).then(|| {
        let ended = if libc::WIFSIGNALED(status) {
            Ended::Killed(libc::WTERMSIG(status))
        } else {
            Ended::Exited(libc::WEXITSTATUS(status))
        };
        (child, ended)
    })
}

/// Send a signal to every other process.
pub fn signal_all(signal: i32) {
    unsafe { libc::kill(-1, signal) };
}

/// Signal number of SIGTERM.
pub const TERM: i32 = libc::SIGTERM;
/// Signal number of SIGKILL.
pub const KILL: i32 = libc::SIGKILL;
