use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ipc::confinement::Confinement;
use ipc::refusal::Refusal;
use ipc::rights::{Execution, Network};
use protocol::event::HostUse;
use protocol::network_words;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::net::unix::pipe::Receiver;
use tokio::time::timeout;

use super::recognise::{Registry, SelfInstaller, is_program};
use super::tree::{TreeDigest, TreeError, digest_tree};
use crate::monitor::{
    BrokerProcess, Ended, Gateway, GatewayError, GuestLog, GuestOwner, HostUses, Launch, Launched,
    SpawnError, Spawner, StatusPipe, Stdio,
};

const PATIENCE: Duration = Duration::from_mins(10);

/// Maximum number of bytes of an installer's output that are kept for an error message.
const SAID: usize = 4 << 10;

/// Shell commands that install npm packages, and print the name and version of the program to start.
const NPM: &str = r#"
npm install --prefix "$tree" --no-audit --no-fund --no-update-notifier --loglevel=error -- "$@" >&2
cd "$tree" && node -e '
const [, spec, wanted] = process.argv, at = spec.lastIndexOf("@");
const name = at > 0 ? spec.slice(0, at) : spec, last = name.split("/").pop();
const { bin, version } = require(process.cwd() + "/node_modules/" + name + "/package.json");
const names = typeof bin === "object" ? Object.keys(bin) : bin ? [last] : [];
console.log((wanted || (names.includes(last) ? last : names[0] || "")) + " " + version);
' "$1" "$program"
"#;

/// Shell commands that install `PyPI` packages in a virtual environment, and print the program's name and version.
const PYPI: &str = r#"
python=python3
for found in /usr/bin/python3 /usr/local/bin/python3; do [ -x "$found" ] && python=$found && break; done
if "$python" -m venv "$tree" >&2; then
    "$tree/bin/python" -m pip install --quiet --no-input --no-cache-dir --disable-pip-version-check -- "$@" >&2
else
    uv venv --quiet --clear --python "$python" "$tree" >&2
    uv pip install --quiet --no-cache --link-mode copy --python "$tree/bin/python" -- "$@" >&2
fi
"$tree/bin/python" -c '
import importlib.metadata, re, sys
name = re.split(r"[\[@=<>~!]", sys.argv[1])[0]
found = importlib.metadata.distribution(name)
names = [entry.name for entry in found.entry_points if entry.group == "console_scripts"]
print(sys.argv[2] or (name if name in names else (names + [""])[0]), found.version)
' "$1" "$program"
"#;

/// Start of each installation script: ignores the user's configuration, and puts caches into the private temp
/// directory.
const BEFORE: &str = r#"set -eu
tree=$1 program=$2
shift 2
PATH=/usr/local/bin:/usr/bin:/bin:$PATH
HOME=$TMPDIR npm_config_cache=$TMPDIR/npm XDG_CACHE_HOME=$TMPDIR/cache PYTHONNOUSERSITE=1 PIP_CONFIG_FILE=/dev/null
UV_PYTHON_DOWNLOADS=never UV_NO_CONFIG=1
export PATH HOME npm_config_cache XDG_CACHE_HOME PYTHONNOUSERSITE PIP_CONFIG_FILE UV_PYTHON_DOWNLOADS UV_NO_CONFIG
# Node brings certificates of its own, which lack those of an organisation's proxy.
for found in /etc/ssl/certs/ca-certificates.crt /etc/pki/tls/certs/ca-bundle.crt; do
    [ ! -r "$found" ] || { export npm_config_cafile="$found"; break; }
done
"#;

#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    #[error("the gateway to the registry did not start: {0}")]
    Gateway(#[from] GatewayError),
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("the installation took longer than {} min", PATIENCE.as_secs() / 60)]
    Slow,
    #[error("the installation failed ({ended}): {said}")]
    Failed { ended: Ended, said: String, refused: Vec<Refusal> },
    #[error("the package has no program to start")]
    NoProgram,
    #[error(transparent)]
    Tree(#[from] TreeError),
}

#[derive(Debug)]
pub struct Installed {
    /// Path of the installed program. It starts without a network.
    pub command: String,
    pub arguments: Vec<String>,
    pub version: String,
    pub tree: TreeDigest,
    pub hosts: Vec<HostUse>,
    pub refused: Vec<Refusal>,
}

impl SelfInstaller {
    /// Returns the confinement for the installation: as `server`, but `tree` is writable and the registry reachable.
    pub fn confinement(&self, server: Confinement, tree: &Path) -> Confinement {
        let mut rights = server.rights;
        rights.write.push(tree.into());
        rights.net = network_words::hosts([self.preset()]).map_or(Network::Off, Network::Hosts);
        rights.exec = Execution::Allowed;
        Confinement { rights: rights.normalised(), ..server }
    }
}

/// Installs a package into the existing directory `tree`, and computes the digest of the directory.
pub async fn install(
    spawner: &Spawner,
    confinement: Confinement,
    what: &SelfInstaller,
    tree: PathBuf,
) -> Result<Installed, InstallError> {
    let script = match what.registry {
        Registry::Npm => NPM,
        Registry::PyPi => PYPI,
    };
    let script = format!("{BEFORE}{script}");
    let words = ["/bin/sh", "-c", &script, "sh"].map(Into::into);
    let program = what.program.clone().unwrap_or_default();
    let mut command: Vec<std::ffi::OsString> = words.into();
    command.extend([tree.clone().into(), program.into()]);
    command.extend(what.packages.iter().map(Into::into));
    let launch = Launch { confinement, command, arguments: Vec::new(), stdio: Stdio::Piped };
    let launched = spawner.spawn(launch).await?;
    let AttendedInstallation { ended, said, hosts, refused } =
        timeout(PATIENCE, attend(launched)).await.map_err(|_| InstallError::Slow)??;
    if ended != Ended::Exited(0) {
        return Err(InstallError::Failed { ended, said: said.errors, refused });
    }
    let (name, version) =
        said.output.trim().rsplit('\n').next().unwrap_or_default().split_once(' ').unwrap_or_default();
    if !is_program(name) {
        return Err(InstallError::NoProgram);
    }
    let version = version.chars().filter(char::is_ascii_graphic).take(64).collect();
    let (command, arguments) = what.command(&tree, name);
    let digested =
        tokio::task::spawn_blocking(move || digest_tree(&tree)).await.map_err(io::Error::from)??;
    Ok(Installed { command, arguments, version, tree: digested, hosts, refused })
}

struct SaidAtLast {
    output: String,
    errors: String,
}

struct AttendedInstallation {
    ended: Ended,
    said: SaidAtLast,
    hosts: Vec<HostUse>,
    refused: Vec<Refusal>,
}

async fn attend(mut launched: Launched) -> Result<AttendedInstallation, InstallError> {
    let mut status = StatusPipe::new(launched.status)?;
    let broker = BrokerProcess::new(launched.pidfd)?;
    let mut gateway = match launched.gateway.take() {
        Some(gateway) => Some(Gateway::ready(gateway, GuestOwner::default(), &GuestLog::default()).await?),
        None => None,
    };
    let mut uses = HostUses::default();
    let work = async { tokio::join!(broker.wait(), last(launched.stdout), last(launched.stderr)) };
    tokio::pin!(work);
    let (ended, output, errors) = loop {
        tokio::select! {
            done = &mut work => break done,
            report = next_report(&mut gateway) => match report {
                Some(report) => drop(uses.count(report)),
                None => gateway = None,
            },
        }
    };
    if let Some(gateway) = gateway {
        uses.end_gateway(gateway).await;
    }
    let said = SaidAtLast { output: output?, errors: errors? };
    Ok(AttendedInstallation { ended: ended?, said, hosts: uses.all(), refused: status.take() })
}

async fn next_report(gateway: &mut Option<Gateway>) -> Option<ipc::gateway::GatewayReport> {
    match gateway {
        Some(gateway) => gateway.next().await,
        None => std::future::pending().await,
    }
}

async fn last(stream: Option<OwnedFd>) -> io::Result<String> {
    let Some(stream) = stream else { return Ok(String::new()) };
    end_of(Receiver::from_owned_fd(stream)?).await
}

async fn end_of(mut stream: impl AsyncRead + Unpin) -> io::Result<String> {
    let mut kept = Vec::new();
    let mut buffer = vec![0; SAID];
    loop {
        let read = stream.read(&mut buffer).await?;
        if read == 0 {
            return Ok(String::from_utf8_lossy(&kept).into_owned());
        }
        kept.extend_from_slice(&buffer[..read]);
        kept.drain(..kept.len().saturating_sub(SAID));
    }
}
