//! Tests of the full sandbox tier, where other layers deny access and paths differ.

use ipc::confinement::Tier;
use ipc::denial::{Denial, Layer, Operation};
use ipc::rights::Grant;
use ipc::tool::{Access, CommandExit, CommandResult, FailedAccess, ShellExec, ToolError, ToolErrorKind};
use libc::{EACCES, EBUSY, EPERM, EROFS, EXDEV};

use super::{auto, deny, open_places};
use crate::judgement::{StandingRights, denied, flags};

fn explain(standing: &StandingRights, operation: Operation, path: &str, errno: i32) -> Option<Denial> {
    let access = FailedAccess { operation, path: path.into(), errno, permitted_by_mode: true, nearest: None };
    let message = "refused".to_owned();
    denied::explain(standing, &ToolError { kind: ToolErrorKind::Refused, message, access: Some(access) })
}

fn likely(standing: &StandingRights, output: &str) -> Option<Denial> {
    let call = ShellExec {
        command: "x".to_owned(),
        access: Access::Standing,
        network: None,
        cwd: None,
        timeout_ms: None,
    };
    let (head, tail) = (output.to_owned(), String::new());
    let result = CommandResult {
        named: open_places(standing, &call, output),
        exit: CommandExit::Code(1),
        head,
        omitted_bytes: 0,
        tail,
        saved: None,
        process: 0,
        refused: Vec::new(),
        duration_ms: 1,
    };
    denied::likely(standing, &call, &result).into_iter().next()
}

#[test]
fn a_project_below_the_directory_of_temporary_files_is_no_temporary_file() {
    let mut standing = auto();
    standing.project = "/tmp/p".into();
    standing.rights.write.push("/tmp/p".into());
    standing.rights.write.push("/tmp/given".into());
    standing.rights.hidden.push("/tmp/p/secret".into());
    standing.rights.protected.push("/tmp/p/.git/hooks".into());
    standing.rights = standing.rights.normalised();
    let full = standing.seen_in(Tier::Full);
    assert_eq!(full.temp, Some("/tmp".into()));
    for (path, may_write) in [
        ("/tmp/p/a", true),
        ("/tmp/given/a", true),
        ("/tmp/own", true),
        ("/tmp/p/.git/hooks/a", false),
        ("/tmp/p/secret", false),
    ] {
        assert_eq!(full.allows_write(&path.into()), may_write, "{path}");
        assert_eq!(full.is_in_temp(&path.into()), path == "/tmp/own", "{path}");
    }
    assert!(full.hidden_root(&"/tmp/p/secret/key".into()).is_some());
}

#[test]
fn each_refusal_of_the_full_tier_names_who_refused() {
    use Operation::{Network, Read, Write};
    let table = [
        (Write, "/etc/x", EROFS, Layer::Mounts, Layer::Landlock),
        (Write, "/etc/x", EXDEV, Layer::Mounts, Layer::Landlock),
        (Write, "/etc/x", EACCES, Layer::Landlock, Layer::Landlock),
        (Write, "/home/me/.ssh/x", EROFS, Layer::Mask, Layer::Landlock),
        (Read, "/home/me/.ssh/x", EACCES, Layer::Mask, Layer::Landlock),
        (Network, "", EPERM, Layer::NetworkNamespace, Layer::Mediation),
    ];
    for (operation, path, errno, full, floor) in table {
        let layer = |tier| explain(&auto().seen_in(tier), operation, path, errno).map(|denial| denial.layer);
        assert_eq!(layer(Tier::Full), Some(full), "{operation} {path} {errno}");
        assert_eq!(layer(Tier::Floor), Some(floor), "{operation} {path} {errno}");
    }
    let unmediated = explain(&auto().seen_in(Tier::FloorUnmediated), Network, "", EPERM).unwrap();
    assert_eq!(unmediated.layer, Layer::Seccomp);
}

#[test]
fn what_programs_say_in_the_full_tier() {
    let layer = |output: &str| likely(&auto().seen_in(Tier::Full), output).map(|denial| denial.layer);
    let table = [
        ("touch: cannot touch '/etc/x': Read-only file system", Layer::Mounts),
        ("touch: cannot touch '/etc/x': Permission denied", Layer::Landlock),
        ("cat: /home/me/.ssh/id: Permission denied", Layer::Mask),
        ("connect: Network is unreachable", Layer::NetworkNamespace),
    ];
    for (output, expected) in table {
        assert_eq!(layer(output), Some(expected), "{output}");
    }
}

fn with_git() -> StandingRights {
    let mut standing = auto();
    standing.rights.protected.push("/home/me/p/.git/config".into());
    standing.seen_in(Tier::Full)
}

#[test]
fn what_is_held_in_its_place_cannot_be_moved_and_the_reason_is_said() {
    let said = |output: &str| likely(&with_git(), output).map(|denial| denial.to_string());
    insta::assert_snapshot!(said("mv: cannot move '.git' to '.g2': Device or resource busy").unwrap(), @"likely blocked by the sandbox (read-only mount): write /home/me/p/.git; missing access: move or remove /home/me/p/.git, protected by the settings or by Bailiwick; it cannot be allowed here");
    insta::assert_snapshot!(said("rm: cannot remove '.git/config': Device or resource busy").unwrap(), @"likely blocked by the sandbox (read-only mount): write /home/me/p/.git/config; missing access: move or remove /home/me/p/.git/config, protected by the settings or by Bailiwick; the user can allow it with --write .git/config");
    insta::assert_snapshot!(said("cp: cannot create regular file '.git/hooks/x': Read-only file system").unwrap(), @"likely blocked by the sandbox (read-only mount): write /home/me/p/.git/hooks/x; missing access: write /home/me/p/.git/hooks/x, protected by the settings or by Bailiwick; it cannot be allowed here");
    for not_ours in ["umount: /: Device or resource busy", "rm: cannot remove 'mnt': Device or resource busy"]
    {
        assert_eq!(said(not_ours), None, "{not_ours}");
    }
    let floor = likely(&auto(), "mv: cannot move '.git' to '.g2': Device or resource busy");
    assert_eq!(floor, None, "nothing is held there");
    let replaced = explain(&with_git(), Operation::Write, "/home/me/p/.git/config", EBUSY).unwrap();
    assert_eq!((replaced.layer, replaced.grant.as_deref()), (Layer::Mounts, Some("--write .git/config")));
    assert_eq!(explain(&auto(), Operation::Write, "/etc/x", EBUSY), None);
}

/// Tests that the flag for a repository outside of the project has the whole path.
#[test]
fn the_right_to_configure_git_is_named_where_it_lies() {
    let mut standing = with_git();
    standing.project = "/home/me/worktree".into();
    let grant = flags::for_write(&standing, &"/home/me/p/.git/config".into());
    assert_eq!(grant.as_deref(), Some("--write /home/me/p/.git/config"));
}

#[test]
fn a_private_tmp_is_the_temp_directory_and_may_be_changed() {
    let (host, full) = (auto(), auto().seen_in(Tier::Full));
    assert_eq!(full.temp, Some("/tmp".into()));
    assert!(full.allows_write(&"/tmp/x".into()) && !host.allows_write(&"/tmp/x".into()));
    assert_eq!(likely(&full, "touch: cannot touch '/tmp/x': Permission denied"), None);
    assert!(likely(&host, "touch: cannot touch '/tmp/x': Permission denied").is_some());
    assert_eq!(full.line(), host.line(), "the line is about the same rights");
}

#[test]
fn a_project_in_a_private_tmp_is_as_closed_as_elsewhere() {
    let mut below = deny();
    below.project = "/tmp/p".into();
    let full = below.seen_in(Tier::Full);
    assert!(full.allows_write(&"/tmp/q".into()));
    let denial = explain(&full, Operation::Write, "/tmp/p/x", EROFS).unwrap();
    assert_eq!((denial.layer, denial.grant.as_deref()), (Layer::Mounts, Some("--mode auto")));
}

#[test]
fn a_write_root_below_the_hosts_tmp_is_told_from_the_private_one() {
    let mut host = auto();
    host.rights.write.push("/tmp/x/q".into());
    host.rights = host.rights.normalised();
    let full = host.seen_in(Tier::Full);
    assert!(full.line().contains(" /tmp/x/q ") && !auto().seen_in(Tier::Full).line().contains("/tmp"));
    assert_eq!(full.line(), host.line(), "the line is about the same rights");
    let root = |path: &str| full.write_root(&path.into()).cloned();
    assert_eq!(root("/tmp/x/q/f"), Some("/tmp/x/q".into()));
    assert_eq!((root("/tmp/x/f"), root("/etc")), (Some("/tmp".into()), None));
}

#[test]
fn a_write_root_inside_a_closed_project_in_a_private_tmp_is_open() {
    let mut below = deny();
    below.project = "/tmp/p".into();
    let grant = Grant { write: vec!["/tmp/p/out".into()], ..Grant::default() };
    for tier in [Tier::Full, Tier::Floor] {
        let granted = below.with_grant(&grant).seen_in(tier);
        let writable = ["/tmp/p/out/f", "/tmp/p/f"].map(|path| granted.allows_write(&path.into()));
        assert_eq!(writable, [true, false], "{tier}");
        assert!(granted.line().contains("/tmp/p/out"), "{tier} {}", granted.line());
    }
}

#[test]
fn the_mask_of_a_hidden_place_permits_nothing_by_itself() {
    let error = |path: &str| {
        let access = FailedAccess {
            operation: Operation::Read,
            path: path.into(),
            errno: EACCES,
            permitted_by_mode: false,
            nearest: None,
        };
        ToolError { kind: ToolErrorKind::Refused, message: "refused".to_owned(), access: Some(access) }
    };
    let layer = |tier, path| denied::explain(&auto().seen_in(tier), &error(path)).map(|denial| denial.layer);
    assert_eq!(layer(Tier::Full, "/home/me/.ssh/id"), Some(Layer::Mask));
    assert_eq!(layer(Tier::Floor, "/home/me/.ssh/id"), None);
    assert_eq!(layer(Tier::Full, "/var/lib/x"), None, "not hidden: plain permissions refused it");
}
