//! Tests effects that a worker prepares without permission to carry them out, and that a one-shot worker carries out.
//! The files show the result.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::fs;
use std::os::unix::fs::{MetadataExt, chown};
use std::path::{Path, PathBuf};
use std::time::Duration;

use boundary::monitor::{GuestLog, PrivateTemp, Programs, Spawner, Temps, Worker, WorkerSpec};
use boundary::policy::HiddenInodes;
use gate::ApprovalMode;
use ipc::confinement::{Confinement, Identity, Tier, TierChoice};
use ipc::denial::Operation;
use ipc::effect::Effect;
use ipc::id::{AgentId, CallId, Generation};
use ipc::message::CallOutcome;
use ipc::rights::{Grant, Network, Reach};
use ipc::tool::{Access, CommandExit, Edit, EditFile, ShellExec, ToolCall, ToolErrorKind, ToolOutput};
use nix::unistd::geteuid;
use protocol::event::{EventKind, WorkerStarted};
use supervisor::engine::driver::{Journal, OneShot, OneShotError, Processes, Unlogged, prepare};
use tests::standing::policy;
use tests::{PLAIN_USER, User, World, alive, skip};
use tokio::sync::oneshot;

struct Site {
    world: World,
    temp: PrivateTemp,
    programs: Programs,
    spawner: Spawner,
    /// User as whom workers run. `None` if that is the user of this process.
    owner: Option<Identity>,
}

#[derive(Default)]
struct Notes {
    events: Vec<EventKind>,
    printed: Vec<u8>,
    remarks: Vec<String>,
}

impl Journal for Notes {
    async fn log(&mut self, kind: EventKind) -> Result<(), Unlogged> {
        self.events.push(kind);
        Ok(())
    }

    async fn output(&mut self, bytes: Vec<u8>) {
        self.printed.extend(bytes);
    }

    async fn remark(&mut self, text: String) {
        self.remarks.push(text);
    }
}

impl Notes {
    fn started(&self) -> &WorkerStarted {
        match &self.events[0] {
            EventKind::WorkerStarted(started) => started,
            other => panic!("{other:?}"),
        }
    }
}

impl Site {
    fn new() -> Self {
        Self::with_worker("bailiwick-worker")
    }

    fn with_worker(worker: &str) -> Self {
        let world = World::new(User::Myself);
        world.file("a.txt", "old\n");
        let locks = world.own().join("locks");
        fs::create_dir(&locks).unwrap();
        let temps = Temps::open(&world.own().join("cache"), true).unwrap();
        let temp = PrivateTemp::create(&temps, &locks).unwrap();
        let ours = tests::Programs::get();
        let programs = Programs { sandbox_exec: ours.path("sandbox-exec"), worker: ours.path(worker) };
        let spawner = Spawner::start(programs.sandbox_exec.clone(), HiddenInodes::default()).unwrap();
        Self { world, temp, programs, spawner, owner: None }
    }

    fn standing(&self) -> Confinement {
        let policy = policy(&self.world, self.temp.path(), ApprovalMode::Deny);
        Confinement {
            temp: Some(policy.temp.clone()),
            identity: self.owner,
            ..Confinement::new(policy.standing(), policy.project)
        }
    }

    /// Returns the effect of a call, as the standing worker prepares it.
    async fn prepare(&self, call: ToolCall) -> Effect {
        let spec = WorkerSpec {
            agent: AgentId::root(),
            generation: Generation(1),
            confinement: self.standing(),
            program: self.programs.worker.clone(),
            leftovers: None,
            guests: GuestLog::default(),
        };
        let (worker, mut events) = Worker::start(&self.spawner, spec).await.unwrap();
        prepare(&worker, &mut events, CallId(1), call).await.unwrap()
    }

    fn shot(&self, effect: Effect, granted: Grant) -> OneShot {
        let (standing, asked) = (self.standing(), granted.clone());
        OneShot {
            agent: AgentId::root(),
            generation: Generation(2),
            standing,
            watch: None,
            asked,
            granted,
            call: Some(CallId(1)),
            effect: effect.into(),
            guests: GuestLog::default(),
        }
    }

    fn processes(&self) -> Processes {
        let (spawner, programs) = (self.spawner.clone(), self.programs.clone());
        Processes { spawner, programs, leftovers: None, places: None }
    }

    async fn carry_out(&self, shot: OneShot) -> (Result<CallOutcome, OneShotError>, Notes) {
        let mut notes = Notes::default();
        let (_never, cancelled) = oneshot::channel();
        let outcome = shot.carry_out(&self.processes(), &mut notes, cancelled).await;
        (outcome, notes)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.world.project().join(name)
    }
}

fn write(path: &Path) -> Grant {
    Grant { write: vec![path.into()], ..Grant::default() }
}

fn edit() -> ToolCall {
    let change = Edit { old_string: "old".to_owned(), new_string: "new".to_owned(), replace_all: false };
    ToolCall::EditFile(EditFile { path: "a.txt".into(), edits: vec![change] })
}

fn shell(command: &str) -> ToolCall {
    ToolCall::ShellExec(ShellExec {
        command: command.to_owned(),
        access: Access::Write,
        network: None,
        cwd: None,
        timeout_ms: None,
    })
}

fn refused(outcome: Result<CallOutcome, OneShotError>) -> ipc::tool::ToolError {
    match outcome {
        Ok(CallOutcome::Failed(error)) => error,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn an_approved_patch_is_carried_out_by_a_worker_of_its_own() {
    let site = Site::new();
    let effect = site.prepare(edit()).await;
    assert_eq!(fs::read(site.path("a.txt")).unwrap(), b"old\n");
    let (outcome, notes) = site.carry_out(site.shot(effect, write(&site.world.project()))).await;
    assert!(matches!(outcome, Ok(CallOutcome::Done(ToolOutput::Written(_)))), "{outcome:?}");
    assert_eq!(fs::read(site.path("a.txt")).unwrap(), b"new\n");
    let started = notes.started();
    let purpose = started.one_shot.as_ref().unwrap();
    assert_eq!(purpose.grant.to_string(), format!("write {}", site.world.project().display()));
    assert_eq!((purpose.call, purpose.effect_digest.len()), (Some(CallId(1)), 64));
    assert!(matches!(&notes.events[1..], [EventKind::WorkerEnded { generation: Generation(2), .. }]));
    assert!(!alive(started.pid));
}

#[tokio::test]
async fn without_the_grant_the_same_effect_is_refused_by_the_kernel() {
    let site = Site::new();
    let effect = site.prepare(edit()).await;
    let (outcome, notes) = site.carry_out(site.shot(effect, Grant::default())).await;
    let access = refused(outcome).access.unwrap();
    assert_eq!(access.operation, Operation::Write);
    assert_eq!(fs::read(site.path("a.txt")).unwrap(), b"old\n");
    assert_eq!(notes.started().one_shot.as_ref().unwrap().grant.to_string(), "nothing more");
}

#[tokio::test]
async fn what_one_worker_moved_stays_hidden_from_the_next() {
    for tier in tests::tier::all() {
        let (choice, may_move) = match tier {
            Tier::Full => (TierChoice::Full, false),
            Tier::Floor | Tier::FloorUnmediated => (TierChoice::Floor, true),
        };
        let site = Site::new();
        site.world.file("a/b/key", "CANARY");
        let run = async |command| {
            let mut shot = site.shot(site.prepare(shell(command)).await, write(&site.world.project()));
            shot.standing.rights.hidden = vec![(&site.path("a/b/key")).into()];
            shot.standing.tier = choice;
            let (outcome, notes) = site.carry_out(shot).await;
            assert!(matches!(outcome, Ok(CallOutcome::Done(_))), "{tier:?}: {outcome:?}");
            format!("{outcome:?} {}", String::from_utf8_lossy(&notes.printed))
        };
        run("mv a c; mv c/b a.txt; mkdir d; mv c/b d/b; true").await;
        let key = if may_move { "d/b/key" } else { "a/b/key" };
        assert_eq!(fs::read_to_string(site.path(key)).unwrap(), "CANARY");
        let read = run("find . -type f -exec cat {} +; true").await;
        assert!(read.contains("old") && !read.contains("CANARY"), "{tier:?}: {read}");
    }
}

#[tokio::test]
async fn an_effect_of_a_file_that_changed_meanwhile_is_refused() {
    let site = Site::new();
    let effect = site.prepare(edit()).await;
    fs::write(site.path("a.txt"), "old, but other\n").unwrap();
    let (outcome, _) = site.carry_out(site.shot(effect, write(&site.world.project()))).await;
    assert_eq!(refused(outcome).kind, ToolErrorKind::Changed);
    assert_eq!(fs::read(site.path("a.txt")).unwrap(), b"old, but other\n");
}

#[tokio::test]
async fn an_approved_command_runs_as_shown_under_its_grant_and_no_more() {
    let site = Site::new();
    let beyond = site.world.outside().join("there.txt");
    let command = format!("echo made > made.txt; echo printed; echo x > {} || exit 7", beyond.display());
    let effect = site.prepare(shell(&command)).await;
    let (outcome, notes) = site.carry_out(site.shot(effect.clone(), write(&site.world.project()))).await;
    let Ok(CallOutcome::Done(ToolOutput::Command(result))) = outcome else { panic!("{outcome:?}") };
    assert_eq!(result.exit, CommandExit::Code(7), "{}", result.head);
    assert_eq!(fs::read(site.path("made.txt")).unwrap(), b"made\n");
    assert!(String::from_utf8_lossy(&notes.printed).contains("printed"));
    assert_eq!(fs::read(&beyond).unwrap(), b"untouched\n");
    // Control: with a grant for this path, the same effect writes there too.
    let mut both = write(&site.world.project());
    both.write.push((&beyond).into());
    let (outcome, _) = site.carry_out(site.shot(effect, both)).await;
    let Ok(CallOutcome::Done(ToolOutput::Command(result))) = outcome else { panic!("{outcome:?}") };
    assert_eq!(result.exit, CommandExit::Code(0), "{}", result.head);
    assert_eq!(fs::read(&beyond).unwrap(), b"x\n");
}

#[tokio::test]
async fn an_answer_that_gives_more_than_was_asked_for_gives_what_was_asked_for() {
    let site = Site::new();
    let outside = site.world.outside();
    let command = format!("echo x > {}/there.txt; echo made > made.txt", outside.display());
    let effect = site.prepare(shell(&command)).await;
    let mut shot = site.shot(effect, write(&site.world.project()));
    let reach = Reach { host: true, ..Reach::default() };
    let sockets = vec!["/run/docker.sock".into()];
    shot.granted = Grant { write: vec!["/".into()], net: Network::On, reach, sockets };
    let rights = shot.confinement().unwrap().rights;
    assert_eq!(rights, shot.standing.rights.with_grant(&shot.asked));
    let (outcome, notes) = site.carry_out(shot).await;
    assert!(matches!(outcome, Ok(CallOutcome::Done(_))), "{outcome:?}");
    assert_eq!(fs::read(outside.join("there.txt")).unwrap(), b"untouched\n");
    assert_eq!(fs::read(site.path("made.txt")).unwrap(), b"made\n");
    assert!(notes.started().rights.to_string().contains("network off"), "{}", notes.started().rights);
}

#[tokio::test]
async fn a_cancelled_command_ends_with_everything_that_it_started() {
    let site = Site::new();
    let effect = site.prepare(shell("setsid sleep 99 & echo $! > pid; echo ready; sleep 99")).await;
    let (cancel, cancelled) = oneshot::channel();
    let pid = site.path("pid");
    let until_ready = async {
        let written = || fs::read_to_string(&pid).is_ok_and(|text| text.ends_with('\n'));
        while !written() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        cancel.send(()).unwrap();
    };
    let mut notes = Notes::default();
    let shot = site.shot(effect, write(&site.world.project()));
    let processes = site.processes();
    let (outcome, ()) = tokio::join!(shot.carry_out(&processes, &mut notes, cancelled), until_ready);
    assert!(matches!(outcome, Ok(CallOutcome::Cancelled)), "{outcome:?}");
    assert!(!alive(notes.started().pid));
    let marked = tests::marked(site.world.mark().as_bytes());
    assert!(marked.is_empty(), "{marked:?}");
}

#[tokio::test]
async fn a_worker_that_answers_twice_is_ended_and_believed_in_nothing() {
    let site = Site::new();
    let effect = site.prepare(edit()).await;
    for (fake, said) in [
        ("commit-outcome-twice", "Outcome for call 1, which is not open"),
        ("commit-prepared", "Outcome for call 1, which asked for something else"),
        ("commit-outcome-unopened", "Outcome for call 78, which is not open"),
        ("commit-ready", "Ready in phase Draining"),
        ("commit-bye", "Bye while 1 calls are open"),
    ] {
        let taken_over = Site::with_worker("fake-worker");
        let mut shot = taken_over.shot(effect.clone(), write(&taken_over.world.project()));
        shot.standing.environment.set.push(("FAKE".to_owned(), fake.as_bytes().to_vec()));
        let (outcome, notes) = taken_over.carry_out(shot).await;
        let Err(OneShotError::Violation(violation)) = outcome else { panic!("{fake}: {outcome:?}") };
        assert_eq!(violation, said, "{fake}");
        let kinds = &notes.events[1..];
        assert!(
            matches!(kinds, [EventKind::ProtocolViolation { .. }, EventKind::WorkerEnded { .. }]),
            "{fake}: {kinds:?}"
        );
        assert!(!alive(notes.started().pid), "{fake}");
    }
}

#[tokio::test]
async fn what_an_approved_command_leaves_for_the_host_to_run_is_put_back() {
    for tier in [TierChoice::Full, TierChoice::Floor] {
        let site = Site::new();
        site.world.commit();
        let config = fs::read(site.path(".git/config")).unwrap();
        let command = "mkdir -p .git/hooks sub; printf '#!/bin/sh\\n' > .git/hooks/post-commit
            mkdir .vscode; echo {} > .vscode/tasks.json; git config core.hooksPath .; git init -q sub
            git -C sub config core.fsmonitor ./x; echo made > made.txt; true";
        let effect = site.prepare(shell(command)).await;
        let mut shot = site.shot(effect, write(&site.world.project()));
        shot.standing.tier = tier;
        let (outcome, notes) = site.carry_out(shot).await;
        assert!(matches!(outcome, Ok(CallOutcome::Done(_))), "{outcome:?}");
        assert_eq!(fs::read(site.path("made.txt")).unwrap(), b"made\n");
        assert_eq!(fs::read(site.path(".git/config")).unwrap(), config, "{tier:?}");
        assert!(!site.path(".git/hooks/post-commit").exists() && !site.path(".vscode/tasks.json").exists());
        let nested = fs::read_to_string(site.path("sub/.git/config")).unwrap();
        assert!(!nested.contains("fsmonitor"), "{nested}");
        let Some(EventKind::Restored { call: Some(CallId(1)), places, .. }) = notes.events.last() else {
            panic!("{:?}", notes.events)
        };
        assert!(places.iter().all(|place| place.restored), "{places:?}");
        let places: Vec<_> = places.iter().map(|place| place.path.to_string()).collect();
        for place in [".vscode", "sub/.git/config"] {
            assert!(places.iter().any(|path| path.starts_with(place)), "{place} in {places:?}");
        }
        assert!(notes.remarks[0].starts_with("(Changed and restored: "), "{:?}", notes.remarks);
    }
}

#[tokio::test]
async fn what_was_granted_itself_stays_as_the_command_left_it() {
    let site = Site::new();
    site.world.commit();
    let command = "mkdir -p .git/hooks && echo x > .git/hooks/mine && git config core.hooksPath .";
    let ToolCall::ShellExec(call) = shell(command) else { panic!() };
    let effect = site.prepare(ToolCall::ShellExec(ShellExec { access: Access::Standing, ..call })).await;
    let shot = site.shot(effect, write(&site.path(".git")));
    let (outcome, notes) = site.carry_out(shot).await;
    assert!(matches!(outcome, Ok(CallOutcome::Done(_))), "{outcome:?}");
    assert_eq!(fs::read(site.path(".git/hooks/mine")).unwrap(), b"x\n");
    assert!(fs::read_to_string(site.path(".git/config")).unwrap().contains("hooksPath"));
    assert!(notes.remarks.is_empty(), "{:?}", notes.remarks);
}

#[tokio::test]
async fn what_is_approved_in_another_users_project_is_done_as_its_owner() {
    if !geteuid().is_root() {
        skip!("only root works in another user's project");
    }
    for tier in [TierChoice::Full, TierChoice::Floor] {
        let mut site = Site::new();
        let (uid, gid) = (PLAIN_USER, PLAIN_USER);
        for path in [site.world.project().as_path(), &site.path("a.txt"), site.temp.path()] {
            chown(path, Some(uid), Some(gid)).unwrap();
        }
        site.owner = Some(Identity { uid, gid });
        for call in [edit(), shell("id -u > made.txt; echo x > $TMPDIR/x")] {
            let mut shot = site.shot(site.prepare(call).await, write(&site.world.project()));
            shot.standing.tier = tier;
            let (outcome, _) = site.carry_out(shot).await;
            assert!(matches!(outcome, Ok(CallOutcome::Done(_))), "{tier:?}: {outcome:?}");
        }
        assert_eq!(fs::read_to_string(site.path("made.txt")).unwrap(), format!("{uid}\n"));
        for made in ["a.txt", "made.txt"] {
            let meta = fs::metadata(site.path(made)).unwrap();
            assert_eq!((meta.uid(), meta.gid()), (uid, gid), "{tier:?}: {made}");
        }
        assert_eq!(fs::read(site.path("a.txt")).unwrap(), b"new\n");
    }
}
