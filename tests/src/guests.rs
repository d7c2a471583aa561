//! Starts guests for MCP servers, and reads guests from session logs.

use std::fs;
use std::path::{Path, PathBuf};

use boundary::monitor::{GuestLog, McpEvent, McpServerProcess, McpServerSpec, Programs, Spawner};
use boundary::policy::HiddenInodes;
use ipc::confinement::{Confinement, Environment, Identity, TierChoice};
use ipc::mcp::{McpCommand, McpDescription, McpFailure, McpReport, McpRequest, McpResult, McpTool};
use ipc::path::WirePath;
use ipc::rights::{Network, Reach, Rights};
use serde_json::Value;

const SYSTEM: [&str; 11] =
    ["/bin", "/sbin", "/lib", "/lib32", "/lib64", "/usr", "/etc", "/opt", "/proc", "/sys", "/dev"];

/// Directories in a server's home.
const HOME: [&str; 4] = ["home/.cache", "home/.config", "home/.local/share", "tmp"];

/// Access of a server in addition to what every server has.
#[derive(Clone, Debug, Default)]
pub struct ServerRights {
    pub read: Vec<PathBuf>,
    pub write: Vec<PathBuf>,
    pub net: Network,
    pub reach: Reach,
}

/// Returns the confinement of a server, whose home and temp directory are in `place`, an existing directory.
pub fn confinement(
    programs: &Programs,
    store: &Path,
    rights: ServerRights,
    tier: TierChoice,
    identity: Option<Identity>,
) -> Confinement {
    for place in HOME {
        let place = store.join(place);
        fs::create_dir_all(&place).expect("our own directory");
    }
    if let Some(Identity { uid, gid }) = identity {
        for place in ["", "tmp", "home", "home/.cache", "home/.config", "home/.local", "home/.local/share"] {
            std::os::unix::fs::chown(store.join(place), Some(uid), Some(gid)).expect("our own directory");
        }
    }
    let named = SYSTEM.iter().map(Path::new).chain([programs.worker.as_path()]);
    let own = rights.read.iter().chain(&rights.write).map(PathBuf::as_path);
    let read = named.chain(own).filter_map(|place| fs::canonicalize(place).ok()).map(WirePath::from);
    let ServerRights { write, net, reach, .. } = rights.clone();
    let write = write.iter().map(|place| WirePath::from(place.as_path()));
    let rights = Rights {
        read: read.chain([store.into()]).collect(),
        write: write.chain([store.into()]).collect(),
        net,
        reach,
        ..Rights::default()
    };
    let set = [("HOME", "home"), ("XDG_CACHE_HOME", "home/.cache")]
        .map(|(name, place)| (name.to_owned(), store.join(place).into_os_string().into_encoded_bytes()));
    Confinement {
        temp: Some(store.join("tmp").as_path().into()),
        environment: Environment { set: set.into(), ..Environment::default() },
        tier,
        identity,
        ..Confinement::new(rights.normalised(), "/".into())
    }
}

/// Started server that has described itself.
#[derive(Debug)]
pub struct DescribedServer {
    pub process: McpServerProcess,
    /// Spawner. Dropping the spawner would end the server.
    _spawner: Spawner,
    pub tools: Vec<McpTool>,
    pub description: McpDescription,
}

impl DescribedServer {
    /// Starts a server, and waits for its description.
    pub async fn start(
        programs: &Programs,
        confinement: Confinement,
        command: McpCommand,
    ) -> Result<Self, String> {
        let spawner = Spawner::start(programs.sandbox_exec.clone(), HiddenInodes::default());
        let spawner = spawner.map_err(|error| error.to_string())?;
        let (name, log) = ("docs".to_owned(), GuestLog::default());
        let spec = McpServerSpec { name, program: programs.worker.clone(), confinement, command, log };
        let mut process = McpServerProcess::start(&spawner, spec).await.map_err(|error| error.to_string())?;
        let mut tools = Vec::new();
        loop {
            match process.next().await {
                McpEvent::Report(McpReport::Tool(tool)) => tools.push(tool),
                McpEvent::Report(McpReport::Described(description)) => {
                    return Ok(Self { process, _spawner: spawner, tools, description });
                }
                McpEvent::Report(McpReport::Gone(failure)) => return Err(format!("{failure:?}")),
                McpEvent::Ended(end) => return Err(format!("{end:?}")),
                _ => {}
            }
        }
    }

    pub async fn call(&mut self, tool: &str, arguments: &str) -> Result<McpResult, McpFailure> {
        let what = McpRequest::CallTool { tool: tool.to_owned(), arguments: arguments.to_owned() };
        self.process.request(what).await.expect("the guest reads");
        loop {
            match self.process.next().await {
                McpEvent::Report(McpReport::Done { outcome, .. }) => return outcome,
                McpEvent::Ended(end) => panic!("{end:?}"),
                _ => {}
            }
        }
    }
}

/// Returns the kind and the end reason of each guest in a log, in the order of the ends, such as `gateway owner_ended`.
/// Panics if a guest does not end exactly once, or ends after its owner (worker, guest or session).
pub fn ends(log: &[Value]) -> Vec<String> {
    let is_of = |event: &Value, other: &Value| event["agent"] == other["agent"];
    let (mut open, mut ends): (Vec<&Value>, _) = (Vec::new(), Vec::new());
    for event in log {
        let data = &event["data"];
        match event["type"].as_str().unwrap_or_default() {
            "guest_started" => {
                let twice =
                    open.iter().find(|other| is_of(event, other) && other["data"]["guest"] == data["guest"]);
                assert!(twice.is_none(), "started twice: {event}");
                open.push(event);
            }
            "guest_ended" => {
                let at = open
                    .iter()
                    .position(|other| is_of(event, other) && other["data"]["guest"] == data["guest"]);
                let started = open.remove(at.unwrap_or_else(|| panic!("an end without a start: {event}")));
                let below =
                    open.iter().find(|other| is_of(event, other) && other["data"]["of"] == data["guest"]);
                assert!(below.is_none(), "{below:?} outlives {event}");
                let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
                ends.push(format!("{} {}", word(&started["data"]["kind"]), word(&data["reason"]["type"])));
            }
            "worker_ended" => {
                let left = open
                    .iter()
                    .find(|other| is_of(event, other) && other["data"]["worker"] == data["generation"]);
                assert!(left.is_none(), "{left:?} outlives {event}");
            }
            "sub_agent_result" => {
                let left = open.iter().find(|other| other["agent"] == data["agent"]);
                assert!(left.is_none(), "{left:?} outlives {event}");
            }
            "result" => assert!(open.is_empty(), "{open:?} outlive the session"),
            _ => {}
        }
    }
    assert!(open.is_empty(), "without an end: {open:?}");
    ends
}
