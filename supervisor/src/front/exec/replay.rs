//! `bailiwick replay`: repeats a recorded run. A local server answers the model requests from the recording.

use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use clap::ValueEnum;
use gate::activity::Activity;
use gate::modes::{Position, permits};
use model::recording::{Mismatch, Places, Recording, RecordingComparison, Run, Task};
use model::replay::{RecordedRequest, ReplayServer, Reply, Script};
use model::secrets::TakenKeys;

use super::{Beginning, carry_out};
use crate::engine::opening::{Refusal, SessionDirs};
use crate::process::directories::Directories;
use crate::process::exit::Exit;
use crate::process::messages::complain;
use crate::process::signals::Endings;
use crate::settings::args::{
    ActivityArg, ConfinementArgs, ExecArgs, ModelArgs, ProviderArg, ReachArg, ReplayArgs,
};

/// API key for the local server, which accepts any key.
const KEY: &str = "no-key-is-needed-on-loopback";

pub(crate) async fn run(args: ReplayArgs, directories: Directories) -> Exit {
    match begin(&args, directories).await {
        Ok(exit) => exit,
        Err(Refusal(exit, message)) => {
            complain(&message);
            exit
        }
    }
}

async fn begin(args: &ReplayArgs, directories: Directories) -> Result<Exit, Refusal> {
    let recording = Arc::new(Recording::open(&args.recording).map_err(Refusal::usage)?);
    if args.serve {
        return serve(&recording, args.timing).await;
    }
    let task = task_of(&recording.run).map_err(Refusal::usage)?;
    let player = Player::start(recording, args.timing).map_err(Refusal::internal)?;
    let exec_args = player.exec_args(args)?;
    let keys = TakenKeys { anthropic: Some(KEY.into()), openai: Some(KEY.into()), ..TakenKeys::default() };
    let place = SessionDirs { directories, keys };
    let outcome = carry_out(&exec_args, Beginning::Task(task), place, |places| player.arrived(places)).await;
    Ok(match player.mismatch() {
        None => outcome.exit,
        // The run differed from the recording and was stopped.
        Some(mismatch) => {
            complain(&mismatch);
            Exit::Provider
        }
    })
}

/// Returns the task of a recorded run. Fails if a person took part in the run.
fn task_of(run: &Run) -> Result<Task, String> {
    const INSTEAD: &str = "\n  hint: --serve sends the recorded responses to any client";
    match &run.task {
        None => Err(format!(
            "this recording has no task to run again: the recorded session was interactive{INSTEAD}"
        )),
        Some(_) if permits(Position::FIRST, run.mode).asks() => Err(format!(
            "this recording was made in mode ask, and does not contain the person's answers{INSTEAD}"
        )),
        Some(task) => Ok(task.clone()),
    }
}

async fn serve(recording: &Recording, timing: bool) -> Result<Exit, Refusal> {
    let mut endings = Endings::new().map_err(Refusal::internal)?;
    let server = ReplayServer::start(script(recording, timing)).map_err(Refusal::internal)?;
    writeln!(std::io::stdout(), "{}{}", server.base_url(), recording.prefix()).map_err(Refusal::internal)?;
    Ok(Exit::by_signal(endings.next().await))
}

fn script(recording: &Recording, timing: bool) -> Script {
    recording.exchanges.iter().fold(Script::new(), |script, exchange| script.push(exchange.reply(timing)))
}

struct Player {
    recording: Arc<Recording>,
    server: ReplayServer,
    now: Arc<OnceLock<Places>>,
    mismatch: Arc<Mutex<Option<Mismatch>>>,
}

impl Player {
    fn start(recording: Arc<Recording>, timing: bool) -> std::io::Result<Self> {
        let now = Arc::new(OnceLock::new());
        let mismatch = Arc::new(Mutex::new(None));
        let (recorded, places, found) = (Arc::clone(&recording), Arc::clone(&now), Arc::clone(&mismatch));
        let check = move |number: usize, request: &RecordedRequest| {
            let fault = compare(&recorded, places.get()?, number, request)?;
            let reply = Reply::error(400, "replay_mismatch", "the run differs from the recording");
            lock(&found).get_or_insert(fault);
            Some(reply.header("x-should-retry", "false"))
        };
        let server = ReplayServer::start_checked(script(&recording, timing), Box::new(check))?;
        Ok(Self { recording, server, now, mismatch })
    }

    fn arrived(&self, places: &Places) {
        let _ = self.now.set(places.clone());
    }

    fn mismatch(&self) -> Option<Mismatch> {
        let (made, recorded) = (self.server.requests().len(), self.recording.exchanges.len());
        let missing = (made < recorded).then(|| Mismatch::missing(made + 1, recorded));
        lock(&self.mismatch).clone().or(missing)
    }

    /// Returns the arguments of the run, with the local server as the provider.
    fn exec_args(&self, args: &ReplayArgs) -> Result<ExecArgs, Refusal> {
        let run = &self.recording.run;
        let provider = ProviderArg::from_str(&run.provider, false).map_err(|_| {
            Refusal::usage(format!(
                "run.json: this version of Bailiwick does not know the provider {:?}",
                run.provider
            ))
        })?;
        let model = ModelArgs {
            model: Some(run.model.clone()),
            provider: Some(provider),
            base_url: Some(format!("{}{}", self.server.base_url(), self.recording.prefix())),
        };
        Ok(ExecArgs {
            mode: run.mode.into(),
            activity: match run.activity {
                Activity::Execute => ActivityArg::Execute,
                Activity::Plan => ActivityArg::Plan,
            },
            approve_plan: run.approve_plan,
            output: args.output,
            patch: args.patch.clone(),
            max_steps: run.max_steps,
            max_tokens: run.max_tokens,
            max_usd: run.max_usd,
            timeout: args.timeout,
            no_rewind: true,
            ..ExecArgs::without_flags(args.directory.clone(), confinement(run, args), model)
        })
    }
}

fn compare(
    recording: &Recording,
    now: &Places,
    number: usize,
    request: &RecordedRequest,
) -> Option<Mismatch> {
    let Some(recorded) = recording.exchanges.get(number - 1) else {
        return Some(Mismatch::extra(number, recording.exchanges.len()));
    };
    let comparison = RecordingComparison { recorded: recording.run.places.clone(), now: now.clone() };
    comparison.check(recorded, request)
}

fn confinement(run: &Run, args: &ReplayArgs) -> ConfinementArgs {
    let net = run.net.clone();
    let reach = [
        (run.reach.host, ReachArg::Host),
        (run.reach.lan, ReachArg::Lan),
        (run.reach.link_local, ReachArg::LinkLocal),
        (run.reach.metadata, ReachArg::Metadata),
    ];
    let paths =
        |paths: &[ipc::path::WirePath]| paths.iter().map(|path| Path::to_owned(path.as_path())).collect();
    ConfinementArgs {
        net: Some(net),
        reach: reach.into_iter().filter_map(|(within, place)| within.then_some(place)).collect(),
        write: paths(&run.write),
        socket: paths(&run.sockets),
        hide: paths(&run.hide),
        env: Vec::new(),
        forget_caches: false,
        baseline: None,
        allow_degraded: args.allow_degraded,
        tier: args.tier,
    }
}

fn lock<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}
