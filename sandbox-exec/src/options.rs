use std::ffi::{OsStr, OsString};
use std::os::fd::RawFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use ipc::confinement::{Environment, TierChoice};
use ipc::rights::{HostError, HostRule, Hosts, Network};

use crate::self_test::Targets;

pub const USAGE: &str = "\
usage: sandbox-exec [-C DIR] [--read PATH]… [--write PATH]… [--hide PATH]… [--net off|on|HOST,…] [--socket PATH]…
                    [--env NAME[=VALUE]]… [--gateway-fd N] [--tier best|full|floor] [--landlock-abi N] [--allow-degraded] [--die-with-parent]
                    [--] CMD [ARGUMENT]…
       sandbox-exec --rights-fd N [--status-fd N] [--gateway-fd N] [--] CMD [ARGUMENT]…
       sandbox-exec --self-test [--self-test-hidden PATH] [--self-test-abstract NAME] [--net off|on]
       sandbox-exec --probe | --help | --version";

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Invocation {
    Run(Box<Options>),
    SelfTest {
        targets: Targets,
        /// Network that this process is supposed to have. If it is on, the acts that test the network are left out.
        net: Network,
    },
    Probe,
    Help,
    Version,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    pub rights_fd: Option<RawFd>,
    pub status_fd: Option<RawFd>,
    pub gateway_fd: Option<RawFd>,
    pub flags: Flags,
    pub allow_degraded: bool,
    pub tier: Option<TierChoice>,
    /// Newest Landlock ABI to use; `None` for the newest of the kernel.
    pub landlock_abi: Option<u32>,
    pub die_with_parent: bool,
    pub command: Vec<OsString>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    pub directory: Option<PathBuf>,
    /// Read roots; `/` if empty.
    pub read: Vec<PathBuf>,
    pub write: Vec<PathBuf>,
    pub hide: Vec<PathBuf>,
    pub net: Network,
    pub sockets: Vec<PathBuf>,
    pub environment: Environment,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum UsageError {
    #[error("unknown option {0}")]
    Unknown(String),
    #[error("{0} needs a value")]
    NoValue(&'static str),
    #[error("{option} {value}: expected {expected}")]
    Value { option: &'static str, value: String, expected: &'static str },
    #[error("--rights-fd brings the rights: {0} does not go with it")]
    Conflict(&'static str),
    #[error("two of --rights-fd, --status-fd and --gateway-fd are the same descriptor")]
    SameDescriptor,
    #[error("--net {value}: expected off, on or names of hosts: {source}")]
    Hosts { value: String, source: HostError },
    #[error("no command to execute")]
    NoCommand,
    #[error("{0} goes with --self-test alone")]
    OnlySelfTest(&'static str),
}

pub fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Invocation, UsageError> {
    let mut arguments = arguments.into_iter();
    let mut options = Options::default();
    let mut self_test = false;
    let mut targets = Targets::default();
    while let Some(argument) = arguments.next() {
        let (name, attached) = split(&argument);
        let mut value = |option: &'static str| {
            attached.clone().or_else(|| arguments.next()).ok_or(UsageError::NoValue(option))
        };
        let flags = &mut options.flags;
        match name.as_bytes() {
            b"--help" | b"-h" => return Ok(Invocation::Help),
            b"--version" => return Ok(Invocation::Version),
            b"--probe" => return Ok(Invocation::Probe),
            b"--self-test" => self_test = true,
            b"--self-test-hidden" => targets.hidden = Some(value("--self-test-hidden")?.into()),
            b"--self-test-abstract" => targets.name = Some(value("--self-test-abstract")?),
            b"--rights-fd" => options.rights_fd = Some(descriptor("--rights-fd", &value("--rights-fd")?)?),
            b"--status-fd" => options.status_fd = Some(descriptor("--status-fd", &value("--status-fd")?)?),
            b"--gateway-fd" => {
                options.gateway_fd = Some(descriptor("--gateway-fd", &value("--gateway-fd")?)?);
            }
            b"--tier" => options.tier = Some(tier(&value("--tier")?)?),
            b"--landlock-abi" => options.landlock_abi = Some(abi(&value("--landlock-abi")?)?),
            b"-C" => flags.directory = Some(value("-C")?.into()),
            b"--read" => flags.read.push(value("--read")?.into()),
            b"--write" => flags.write.push(value("--write")?.into()),
            b"--hide" => flags.hide.push(value("--hide")?.into()),
            b"--net" => flags.net = network(&value("--net")?)?,
            b"--socket" => flags.sockets.push(value("--socket")?.into()),
            b"--env" => variable(&value("--env")?, &mut flags.environment)?,
            b"--allow-degraded" => options.allow_degraded = true,
            b"--die-with-parent" => options.die_with_parent = true,
            b"--" => {
                options.command = arguments.collect();
                break;
            }
            bytes if bytes.starts_with(b"-") && bytes.len() > 1 => {
                return Err(UsageError::Unknown(argument.to_string_lossy().into_owned()));
            }
            _ => {
                options.command = std::iter::once(argument).chain(arguments).collect();
                break;
            }
        }
    }
    if self_test {
        return Ok(Invocation::SelfTest { targets, net: options.flags.net });
    }
    let given =
        [("--self-test-hidden", targets.hidden.is_some()), ("--self-test-abstract", targets.name.is_some())];
    if let Some((option, _)) = given.into_iter().find(|(_, given)| *given) {
        return Err(UsageError::OnlySelfTest(option));
    }
    check(options).map(|options| Invocation::Run(options.into()))
}

fn check(options: Options) -> Result<Options, UsageError> {
    let flags = &options.flags;
    let given = [
        ("-C", flags.directory.is_some()),
        ("--read", !flags.read.is_empty()),
        ("--write", !flags.write.is_empty()),
        ("--hide", !flags.hide.is_empty()),
        ("--net", flags.net.reaches_out()),
        ("--socket", !flags.sockets.is_empty()),
        ("--tier", options.tier.is_some()),
        ("--landlock-abi", options.landlock_abi.is_some()),
        ("--env", flags.environment != Environment::default()),
    ];
    if let (Some(_), Some((flag, _))) = (options.rights_fd, given.iter().find(|(_, given)| *given)) {
        return Err(UsageError::Conflict(flag));
    }
    let descriptors = [options.rights_fd, options.status_fd, options.gateway_fd];
    let mut descriptors: Vec<_> = descriptors.into_iter().flatten().collect();
    descriptors.sort_unstable();
    if descriptors.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err(UsageError::SameDescriptor);
    }
    if options.command.is_empty() { Err(UsageError::NoCommand) } else { Ok(options) }
}

fn split(argument: &OsStr) -> (OsString, Option<OsString>) {
    let bytes = argument.as_bytes();
    match bytes.iter().position(|byte| *byte == b'=') {
        Some(at) if bytes.starts_with(b"--") => {
            (OsString::from_vec(bytes[..at].to_vec()), Some(OsString::from_vec(bytes[at + 1..].to_vec())))
        }
        _ => (argument.to_owned(), None),
    }
}

fn descriptor(option: &'static str, value: &OsStr) -> Result<RawFd, UsageError> {
    let number = value.to_str().and_then(|text| text.parse().ok()).filter(|number| *number > 2);
    number.ok_or_else(|| wrong(option, value, "the number of an open descriptor above 2"))
}

fn network(value: &OsStr) -> Result<Network, UsageError> {
    match value.as_bytes() {
        b"off" => Ok(Network::Off),
        b"on" => Ok(Network::On),
        _ => {
            let value = value.to_string_lossy();
            let rules = value.split(',').map(str::parse).collect::<Result<Vec<HostRule>, _>>();
            let hosts = rules.and_then(Hosts::try_from).map(Network::Hosts);
            hosts.map_err(|source| UsageError::Hosts { value: value.into_owned(), source })
        }
    }
}

fn tier(value: &OsStr) -> Result<TierChoice, UsageError> {
    match value.as_bytes() {
        b"best" => Ok(TierChoice::Best),
        b"full" => Ok(TierChoice::Full),
        b"floor" => Ok(TierChoice::Floor),
        _ => Err(wrong("--tier", value, "best, full or floor")),
    }
}

fn abi(value: &OsStr) -> Result<u32, UsageError> {
    let number = value.to_str().and_then(|text| text.parse().ok());
    number.ok_or_else(|| wrong("--landlock-abi", value, "a number"))
}

fn variable(value: &OsStr, environment: &mut Environment) -> Result<(), UsageError> {
    let bytes = value.as_bytes();
    let (name, set) = match bytes.iter().position(|byte| *byte == b'=') {
        Some(at) => (&bytes[..at], Some(&bytes[at + 1..])),
        None => (bytes, None),
    };
    let name = std::str::from_utf8(name).ok().filter(|name| !name.is_empty());
    let name = name.ok_or_else(|| wrong("--env", value, "NAME or NAME=VALUE"))?.to_owned();
    match set {
        Some(set) => environment.set.push((name, set.to_vec())),
        None => environment.pass.push(name),
    }
    Ok(())
}

fn wrong(option: &'static str, value: &OsStr, expected: &'static str) -> UsageError {
    UsageError::Value { option, value: value.to_string_lossy().into_owned(), expected }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Invocation, String> {
        parse(line.split_whitespace().map(OsString::from)).map_err(|error| error.to_string())
    }

    #[test]
    fn a_line_of_every_flag() {
        let line = "-C /p --read / --write=/p --hide /s --socket /r --net on --env A --env B=c=d --allow-degraded \
                    --tier full --landlock-abi=3 --die-with-parent -- ls --net";
        let Invocation::Run(options) = parsed(line).unwrap() else { panic!("not a run") };
        assert_eq!(options.command, ["ls", "--net"]);
        assert!(options.allow_degraded && options.die_with_parent);
        let expected = Flags {
            directory: Some("/p".into()),
            read: vec!["/".into()],
            write: vec!["/p".into()],
            hide: vec!["/s".into()],
            sockets: vec!["/r".into()],
            net: Network::On,
            environment: Environment {
                pass: vec!["A".into()],
                set: vec![("B".into(), b"c=d".to_vec())],
                caches: None,
            },
        };
        assert_eq!(options.flags, expected);
        assert_eq!((options.tier, options.landlock_abi), (Some(TierChoice::Full), Some(3)));
    }

    #[test]
    fn the_command_begins_at_the_first_word() {
        let Invocation::Run(options) = parsed("--net off ls -l --bogus").unwrap() else {
            panic!("not a run")
        };
        assert_eq!(options.command, ["ls", "-l", "--bogus"]);
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (line, message) in [
            ("", "no command to execute"),
            ("--net off --", "no command to execute"),
            ("--bogus -- ls", "unknown option --bogus"),
            (
                "--net a,,b ls",
                "--net a,,b: expected off, on or names of hosts: the host name has an empty part between two dots",
            ),
            (
                "--status-fd 7 --gateway-fd 7 ls",
                "two of --rights-fd, --status-fd and --gateway-fd are the same descriptor",
            ),
            ("--tier max -- ls", "--tier max: expected best, full or floor"),
            ("--landlock-abi new -- ls", "--landlock-abi new: expected a number"),
            ("--write", "--write needs a value"),
            ("--env = -- ls", "--env =: expected NAME or NAME=VALUE"),
            ("--rights-fd 1 -- ls", "--rights-fd 1: expected the number of an open descriptor above 2"),
            ("--rights-fd 3 --write /p -- ls", "--rights-fd brings the rights: --write does not go with it"),
            ("--self-test-hidden /s ls", "--self-test-hidden goes with --self-test alone"),
            ("--self-test-abstract s ls", "--self-test-abstract goes with --self-test alone"),
        ] {
            assert_eq!(parsed(line).unwrap_err(), message, "{line}");
        }
    }

    #[test]
    fn other_invocations() {
        assert_eq!(parsed("--help"), Ok(Invocation::Help));
        assert_eq!(parsed("--version"), Ok(Invocation::Version));
        assert_eq!(parsed("--probe"), Ok(Invocation::Probe));
        let targets = Targets { hidden: Some("/s".into()), name: Some("n".into()) };
        let net = Network::Off;
        assert_eq!(
            parsed("--self-test --self-test-hidden /s --self-test-abstract n"),
            Ok(Invocation::SelfTest { targets, net })
        );
        let (targets, net) = (Targets::default(), Network::On);
        assert_eq!(parsed("--self-test --net on"), Ok(Invocation::SelfTest { targets, net }));
    }
}
