//! Tests a full disk for the session log: the session waits, and continues when there is space again.

use std::path::PathBuf;

use tests::skip;

use super::*;

/// Session whose log is on a small file system, in a mount namespace that ends with the session.
struct SmallDisk {
    world: World,
    ui: Ui,
    sessions: PathBuf,
}

impl SmallDisk {
    fn start(server: &ReplayServer) -> Self {
        let world = world();
        let sessions = world.own().join("state/sessions");
        fs::create_dir_all(&sessions).unwrap();
        let inner = world.ui(server, &["--mode", "auto"]);
        let mut command = Command::new("unshare");
        command.args(["--mount", "--propagation", "private", "sh", "-c"]);
        command.arg("mount -t tmpfs -o size=256k,mode=700 tmpfs \"$0\" && \"$@\"").arg(&sessions);
        command.arg(inner.get_program()).args(inner.get_args()).env_clear();
        command.envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let ui = Ui::start(&command, (200, 80));
        ui.until_shown("/ commands");
        let sessions =
            PathBuf::from(format!("/proc/{}/root", ui.pid())).join(sessions.strip_prefix("/").unwrap());
        Self { world, ui, sessions }
    }

    fn fill(&self) {
        let mut ballast = File::create(self.ballast()).unwrap();
        while ballast.write_all(&[0; 512]).is_ok() {}
    }

    fn free(&self) {
        fs::remove_file(self.ballast()).unwrap();
    }

    fn ballast(&self) -> PathBuf {
        self.sessions.join("ballast")
    }

    fn log(&self) -> String {
        let mut logs = fs::read_dir(&self.sessions).unwrap().map(|entry| entry.unwrap().path());
        let log = logs.find(|path| path.extension().is_some_and(|end| end == "jsonl")).unwrap();
        fs::read_to_string(log).unwrap()
    }
}

fn can_mount() -> bool {
    nix::unistd::geteuid().is_root()
        && Command::new("unshare").args(["--mount", "true"]).status().is_ok_and(|status| status.success())
}

#[test]
fn a_full_disk_pauses_the_session_and_nothing_is_lost() {
    if !can_mount() {
        skip!("nobody may mount a small disk here");
    }
    let server = model_of([shell("echo once >> ran"), done()]);
    let mut disk = SmallDisk::start(&server);
    disk.fill();
    // More than what is left in the last block of the log.
    disk.ui.types(&format!("do it {}\r", "word ".repeat(1200)));
    disk.ui.until_shown("paused: cannot write the log");
    disk.ui.until_shown("everything up to event");
    disk.ui.press_until("\r", "the disk is still full");
    assert!(server.requests().is_empty() && !disk.world.project().join("ran").exists());
    let log = disk.log();
    assert!(log.ends_with('\n') && !log.contains("word word"), "whole lines, and not that one");
    disk.free();
    disk.ui.press_until("\r", "the session continues, and nothing was lost");
    disk.ui.until_shown("Done.");
    assert_eq!(disk.world.read("ran"), "once\n");
    let loaded = supervisor::journal::session::rebuild(disk.log().as_bytes());
    assert_eq!(loaded.faults, []);
    let said = |event: &protocol::event::SessionEvent| {
        matches!(event.kind, protocol::event::EventKind::UserMessage { .. })
    };
    assert_eq!(loaded.tree.events().filter(|event| said(event)).count(), 1);
    disk.ui.types("\x04");
    assert_eq!(disk.ui.end().code, 0);
}

#[test]
fn a_paused_session_can_be_ended() {
    if !can_mount() {
        skip!("nobody may mount a small disk here");
    }
    let server = model_of([done()]);
    let mut disk = SmallDisk::start(&server);
    disk.fill();
    disk.ui.types(&format!("do it {}\r", "word ".repeat(1200)));
    disk.ui.until_shown("paused: cannot write the log");
    disk.ui.types(":q\r");
    let left = disk.ui.end();
    let said = String::from_utf8_lossy(&left.bytes).into_owned();
    assert!(left.code != 0 && said.contains("is saved: free some space there"), "{said}");
    assert!(server.requests().is_empty());
}
