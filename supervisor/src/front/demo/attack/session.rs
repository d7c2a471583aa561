use std::fs;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread::JoinHandle;

use clap::ValueEnum;
use clap::builder::PossibleValue;
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, User, geteuid};
use protocol::event::SessionEvent;
use tokio::sync::mpsc;

use super::victim::{Victim, drained};
use crate::engine::opening::Refusal;
use crate::front::demo::poison::PROMPT;
use crate::process::exit::Exit;
use crate::process::signals::Endings;
use crate::settings::args::{DemoArgs, TierArg};

/// Environment variables of the person that the session gets.
const PASSED: [&str; 2] = ["PATH", "TMPDIR"];

pub(super) struct Attacked {
    child: Child,
    helper: PathBuf,
    arguments: Vec<String>,
    events: mpsc::UnboundedReceiver<SessionEvent>,
    complaints: Option<JoinHandle<String>>,
    endings: Endings,
}

pub(super) enum AttackUpdate {
    Event(Box<SessionEvent>),
    /// This process received a signal to end.
    Signal(i32),
    Ended,
}

impl Attacked {
    pub(super) fn start(args: &DemoArgs, victim: &Victim, url: &str, endings: Endings) -> io::Result<Self> {
        let program = std::env::current_exe()?;
        let arguments = rights(args);
        let mut command = Command::new(&program);
        command.args(["exec", "--mode", "auto", "--output", "stream-json"]).args(&arguments);
        command.args(["--provider", "anthropic", "--model", "scripted", "--base-url", url]).arg("-C");
        command.arg(victim.project()).arg(PROMPT).env_clear();
        command.envs(PASSED.iter().filter_map(|name| Some((*name, std::env::var_os(name)?))));
        // Errors are recognized by their text, which must not be translated.
        command.env("LC_ALL", "C").env("HOME", victim.home()).env("ANTHROPIC_API_KEY", &victim.secrets[2]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn()?;
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let events = stdout.map(read_events).ok_or_else(|| io::Error::other("no standard output"))?;
        let helper = victim.visible(program)?;
        Ok(Self { child, helper, arguments, events, complaints: stderr.map(drained), endings })
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(super) fn process_name(&self) -> io::Result<String> {
        Ok(fs::read_to_string(format!("/proc/{}/comm", self.pid()))?.trim_end().to_owned())
    }

    pub(super) fn helper(&self) -> &Path {
        &self.helper
    }

    /// Returns the flags that change the session's access.
    pub(super) fn arguments(&self) -> &[String] {
        &self.arguments
    }

    pub(super) async fn next(&mut self) -> AttackUpdate {
        tokio::select! {
            event = self.events.recv() => event.map_or(AttackUpdate::Ended, |event| AttackUpdate::Event(Box::new(event))),
            signal = self.endings.next() => AttackUpdate::Signal(signal),
        }
    }

    pub(super) fn terminate(&mut self) -> io::Result<()> {
        kill(Pid::from_raw(self.pid().cast_signed()), Signal::SIGTERM)?;
        self.child.wait().map(drop)
    }

    /// Fails unless the session ends by itself with status 0, or with status 4 because the last calls were denied.
    pub(super) fn finish(&mut self) -> Result<(), Refusal> {
        let status = self.child.wait().map_err(Refusal::internal)?;
        let code = status.code().and_then(|code| u8::try_from(code).ok());
        if [Exit::Done, Exit::Denied].iter().any(|exit| code == Some(exit.code())) {
            return Ok(());
        }
        let complaints = self.complaints.take().and_then(|complaints| complaints.join().ok());
        let cause =
            format!("the attacked session ended early ({status})\n{}", complaints.unwrap_or_default());
        Err(Refusal(code.map_or(Exit::Internal, Exit::Status), cause.trim_end().to_owned()))
    }
}

impl Drop for Attacked {
    fn drop(&mut self) {
        // A session of a failed demo must be ended too.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the flags of `exec` for the session's access.
fn rights(args: &DemoArgs) -> Vec<String> {
    let named = |flag: &str, value: &dyn Fn() -> Option<PossibleValue>| {
        value().map(|value| [flag.to_owned(), value.get_name().to_owned()])
    };
    let tier = named("--tier", &|| args.tier.to_possible_value()).filter(|_| args.tier != TierArg::Best);
    let net = args.net.as_ref().map(|net| ["--net".to_owned(), net.flag()]);
    let reach = args.reach.iter().filter_map(|place| named("--reach", &|| place.to_possible_value()));
    // The session's project is another directory than the person's.
    let absolute = |path: &PathBuf| std::path::absolute(path).unwrap_or_else(|_| path.clone());
    let write = args.write.iter().map(absolute);
    let write = write.map(|path| ["--write".to_owned(), path.display().to_string()]);
    tier.into_iter().chain(net).chain(reach).chain(write).flatten().collect()
}

fn read_events(stdout: ChildStdout) -> mpsc::UnboundedReceiver<SessionEvent> {
    let (sender, events) = mpsc::unbounded_channel();
    std::thread::spawn(move || {
        let lines = BufReader::new(stdout).lines().map_while(Result::ok);
        // Lines of other versions are skipped.
        for event in lines.filter_map(|line| SessionEvent::from_json(line.as_bytes()).ok()) {
            if sender.send(event).is_err() {
                return;
            }
        }
    });
    events
}

pub(super) fn own_keys() -> Option<PathBuf> {
    let user = User::from_uid(geteuid()).ok().flatten()?;
    Some(user.dir.join(".ssh")).filter(|keys| keys.is_dir())
}
