//! # NAME
//!
//! sandbox-exec - execute a program under a ruleset that the kernel holds it to
//!
//! # SYNOPSIS
//!
//! ```text
//! sandbox-exec [-C DIR] [--read PATH]… [--write PATH]… [--hide PATH]… [--net off|on|HOST,…] [--socket PATH]…
//!              [--env NAME[=VALUE]]… [--gateway-fd N] [--tier best|full|floor] [--landlock-abi N] [--allow-degraded] [--die-with-parent]
//!              [--] CMD [ARGUMENT]…
//! sandbox-exec --rights-fd N [--status-fd N] [--gateway-fd N] [--] CMD [ARGUMENT]…
//! sandbox-exec --self-test [--self-test-hidden PATH] [--self-test-abstract NAME] [--net off|on]
//! sandbox-exec --probe
//! ```
//!
//! # DESCRIPTION
//!
//! Executes CMD so that it, and everything that it starts, can read, write and reach only what the flags say, and ends
//! everything that it started when it ends. No privilege is needed, none is kept, and none can be gained.
//!
//! * `-C DIR`: the working directory. Default: here.
//! * `--read PATH`: a tree that may be read and executed. Default: `/`.
//! * `--write PATH`: a tree that may also be changed. Default: none.
//! * `--hide PATH`: what stays unreadable inside a read root, whether it exists yet or not. What is made later beside it is
//!   unreadable too. In the floor tier names can still be listed. Default: nothing.
//! * `--net on`: TCP and UDP, not to this machine itself, private networks, or link-local addresses. Default: off.
//! * `--net HOST,…`: these hosts by name. `HOST` is `NAME[:PORT]` or `*.NAME[:PORT]`, by default at port
//!   443. Connections to them are passed on to the gateway.
//! * `--socket PATH`: a unix socket of another program that may be reached too, by exactly this path. Default: none.
//! * `--gateway-fd N`: the socket to the gateway (`SOCK_SEQPACKET`, unix(7)), which gets a message for each connection (`Arrival`).
//! * `--tier full`: namespaces of its own beside Landlock and seccomp, or no start; `floor`: none. Default: `best`, the full tier
//!   where this machine lets us.
//! * `--landlock-abi N`: uses no newer Landlock than this ABI, to see what an older kernel would do.
//! * `--env NAME`, `--env NAME=VALUE`: passes, or sets, a variable. The environment is otherwise cleared to what development
//!   needs, and whatever looks like a credential is dropped.
//! * `--allow-degraded`: starts although Landlock, seccomp or its listener is missing.
//! * `--die-with-parent`: ends everything when the process that started sandbox-exec ends.
//! * `--rights-fd N`: reads all of the above from a descriptor (frames of `Order`, which can also add arguments to CMD's), and
//!   implies `--die-with-parent`.
//! * `--status-fd N`: writes what happened to a descriptor (frames of `BrokerReport`).
//! * `--self-test`: tries forbidden acts and prints a JSON object for each; meant to be CMD of another sandbox-exec, whose
//!   `--net on` it is told.
//! * `--probe`: tries the acts that standard input has, a JSON object a line, and prints one for each; meant to be CMD too. None
//!   of them changes anything.
//!
//! sandbox-exec stays beside CMD as its broker. SIGINT is passed on to CMD; SIGTERM and SIGHUP end CMD with all its
//! descendants at once. A SIGHUP that was ignored at the start stays so (nohup(1)).
//!
//! # EXIT STATUS
//!
//! That of CMD, or 128 + the signal that ended CMD or sandbox-exec. When CMD was never executed, the stage that failed, which is
//! also named on standard error:
//!
//! 100 usage · 101 rights · 102 descriptors · 103 identity · 104 rules · 105 platform (a layer is missing) · 106 namespaces (this
//! machine refuses the full tier) · 107 mounts · 108 start · 109 session · 110 parent · 111 directory · 112 privileges ·
//! 113 capabilities · 114 landlock · 115 seccomp · 116 attempt (a forbidden act succeeded) · 117 report · 118 execute (CMD cannot be
//! executed) · 119 broker.
//!
//! # SECURITY
//!
//! In this order: inherited descriptors but 0, 1 and 2 are closed; the environment is cleared; in the full tier new user, mount,
//! pid, ipc, uts and, with the network off, network namespaces, in which everything is read-only but the write roots, what is
//! hidden is covered, and `/proc`, `/dev` and the loopback device are CMD's own; a session of its own, with no terminal but one that was made for it; no core
//! dumps;
//! death with the parent; every path of a rule is opened; every capability set empty and the securebits locked;
//! `no_new_privs`; seccomp; Landlock at the best ABI; then one forbidden act for each layer, which must fail (in the
//! floor tier seccomp comes before the capabilities, and what it and the broker refuse is tried before Landlock).
//!
//! Descriptors 0, 1 and 2 are the caller's to choose: a terminal there can be read and written by CMD, though not typed into. The
//! broker, in the full tier PID 1 of the namespaces, performs for CMD the calls that lead to sockets, where they are allowed, and in
//! the floor tier those that change modes, owners, times, attributes and flags of files in the write roots. In the floor tier
//! these are not protected: names, sizes and link targets of hidden files. Ports are the host's there: CMD reaches those that it bound.
//!
//! With a list of hosts CMD's network is as private as with the network off. The broker answers CMD's questions for addresses, asks
//! nobody, and connects to nobody: it accepts CMD's connections to these addresses and passes them on to the gateway.

#![forbid(unsafe_code)]

use std::env;
use std::ffi::OsString;
use std::fs::File;
use std::io::{Write, stderr, stdin, stdout};
use std::mem;
use std::os::fd::OwnedFd;
use std::panic;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use ipc::confinement::{Confinement, Order};
use ipc::devices::Devices;
use ipc::id::Generation;
use ipc::path::WirePath;
use ipc::pipe::{FrameReader, Outgoing};
use ipc::rights::{Execution, Limits, Rights};
use sandbox_exec::launch::Launch;
use sandbox_exec::options::{self, Flags, Invocation, Options, USAGE};
use sandbox_exec::stage::{Failure, Stage};
use sandbox_exec::tree::{Host, Tree};
use sandbox_exec::{descriptors, probe, self_test, system};

/// Allocator of the musl build. The C library's own asks the kernel for each page: dozens of calls in a start.
#[cfg(target_env = "musl")]
#[global_allocator]
static HEAP: dlmalloc::GlobalDlmalloc = dlmalloc::GlobalDlmalloc;

fn main() -> ExitCode {
    // The panic has printed its cause.
    let outcome = panic::catch_unwind(begin);
    outcome.unwrap_or(Stage::Broker.code()).into()
}

fn begin() -> u8 {
    system::set_name(c"sandbox-exec");
    match run(env::args_os().skip(1)) {
        Ok(status) => status,
        Err(failure) => {
            // Without standard error the exit code still names the failed stage.
            drop(writeln!(stderr(), "sandbox-exec: {failure}"));
            if failure.stage == Stage::Usage {
                drop(writeln!(stderr(), "{USAGE}"));
            }
            failure.stage.code()
        }
    }
}

fn run(arguments: impl Iterator<Item = OsString>) -> Result<u8, Failure> {
    let print = |text: &str| writeln!(stdout(), "{text}").map_err(|error| Stage::Report.failed(error));
    match options::parse(arguments).map_err(|error| Stage::Usage.failed(error))? {
        Invocation::Run(options) => execute(*options),
        Invocation::SelfTest { targets, net } => {
            let tried = self_test::run(&targets, &net, &mut stdout());
            tried.map_err(|error| Stage::Report.failed(error))?;
            Ok(0)
        }
        Invocation::Probe => {
            probe::run(stdin().lock(), &mut stdout()).map_err(|error| Stage::Report.failed(error))?;
            Ok(0)
        }
        Invocation::Help => print(USAGE).map(|()| 0),
        Invocation::Version => print(concat!("sandbox-exec ", env!("CARGO_PKG_VERSION"))).map(|()| 0),
    }
}

fn execute(options: Options) -> Result<u8, Failure> {
    let ours: Vec<_> =
        [options.rights_fd, options.status_fd, options.gateway_fd].into_iter().flatten().collect();
    let inherited = descriptors::inherit(&ours).map_err(|error| Stage::Descriptors.failed(error))?;
    let mut inherited = inherited.into_iter().map(File::from);
    let rights = options.rights_fd.and_then(|_| inherited.next());
    let status = options.status_fd.and_then(|_| inherited.next());
    let gateway = options.gateway_fd.and_then(|_| inherited.next());
    let mut reports = status.map(|status| Outgoing::new(status, Generation(0)));
    // The supervisor has the lock for programs that it orders; a person's own order needs one as well.
    let devices = if rights.is_some() { Devices::default() } else { Devices::take() };
    let places = devices.places();
    let launch = launch(options, rights, places);
    let outcome =
        launch.and_then(|launch| Launch { gateway: gateway.map(OwnedFd::from), ..launch }.run(&mut reports));
    if let (Err(failure), Some(reports)) = (&outcome, &mut reports) {
        // The reader is gone, or reads the exit code.
        drop(reports.send(&failure.report()));
    }
    outcome
}

fn launch(options: Options, rights: Option<File>, devices: Vec<WirePath>) -> Result<Launch, Failure> {
    let die_with_parent = options.die_with_parent || rights.is_some();
    let mut launch = match rights {
        Some(rights) => ordered(rights, options.command)?,
        None => Launch::new(Confinement { devices, ..confinement(options.flags)? }, options.command),
    };
    launch.die_with_parent = die_with_parent;
    let confinement = &mut launch.confinement;
    confinement.tier = options.tier.unwrap_or(confinement.tier);
    confinement.landlock_abi = options.landlock_abi.or(confinement.landlock_abi);
    confinement.allow_degraded |= options.allow_degraded;
    confinement.rights = mem::take(&mut confinement.rights).normalised();
    Ok(launch)
}

/// Reads from `rights` what to run and with which rights. The order may come late; meanwhile no process of the same
/// user may read this one's memory.
fn ordered(rights: File, mut command: Vec<OsString>) -> Result<Launch, Failure> {
    system::make_undumpable().map_err(|error| Stage::Rights.failed(error))?;
    let mut orders = FrameReader::new(rights, Generation(0));
    let order = orders.receive().map_err(|error| Stage::Rights.failed(error))?;
    let Some(Order { confinement, arguments }) = order else {
        return Err(Stage::Rights.failed("nobody ordered anything"));
    };
    system::make_dumpable().map_err(|error| Stage::Rights.failed(error))?;
    command.extend(arguments.into_iter().map(OsString::from));
    Ok(Launch::new(confinement, command))
}

fn confinement(flags: Flags) -> Result<Confinement, Failure> {
    let directory = flags.directory.unwrap_or_else(|| PathBuf::from("."));
    let host = Host::default();
    let read = if flags.read.is_empty() { vec![PathBuf::from("/")] } else { flags.read };
    let rights = Rights {
        read: read.iter().map(canonical).collect::<Result<_, _>>()?,
        hidden: flags.hide.iter().map(|path| hidden(path, &host)).collect::<Result<_, _>>()?,
        write: flags.write.iter().map(canonical).collect::<Result<_, _>>()?,
        protected: vec![],
        net: flags.net,
        reach: ipc::rights::Reach::default(),
        sockets: flags.sockets.iter().map(canonical).collect::<Result<_, _>>()?,
        exec: Execution::Allowed,
        limits: Limits::default(),
    };
    let environment = flags.environment;
    Ok(Confinement { environment, ..Confinement::new(rights, canonical(&directory)?) })
}

fn canonical(path: impl AsRef<Path>) -> Result<WirePath, Failure> {
    let path = path.as_ref();
    let found = std::fs::canonicalize(path);
    found.map(Into::into).map_err(|error| Stage::Rights.failed(format!("{}: {error}", path.display())))
}

/// Returns a path to hide as it is written: links stay. The compilation hides a link's target, too.
fn hidden(path: &Path, host: &Host) -> Result<WirePath, Failure> {
    let absolute = std::path::absolute(path)
        .map_err(|error| Stage::Rights.failed(format!("{}: {error}", path.display())))?;
    match (absolute.parent(), absolute.file_name()) {
        (Some(parent), Some(name)) => Ok(host.find(parent).path.join(name).into()),
        _ => Ok(host.find(&absolute).path.into_owned().into()),
    }
}
