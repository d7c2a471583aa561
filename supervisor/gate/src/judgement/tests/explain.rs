use insta::assert_snapshot;
use ipc::denial::{Denial, Grade, Layer, Operation};
use ipc::missing_right::MissingRight;
use ipc::tool::{FailedAccess, ToolError, ToolErrorKind};
use libc::{EACCES, ENOENT, ENOSPC, EPERM, EROFS, EXDEV};

use super::likely::{first, shell};
use super::{auto, deny, online};
use crate::judgement::{StandingRights, denied, flags};

fn explain(standing: &StandingRights, operation: Operation, path: &str, errno: i32) -> Option<Denial> {
    let access = FailedAccess { operation, path: path.into(), errno, permitted_by_mode: true, nearest: None };
    explain_access(standing, access)
}

fn explain_access(standing: &StandingRights, access: FailedAccess) -> Option<Denial> {
    let message = "refused".to_owned();
    denied::explain(standing, &ToolError { kind: ToolErrorKind::Refused, message, access: Some(access) })
}

#[test]
fn write_outside_is_proved_and_names_its_grant() {
    for errno in [EACCES, EPERM, EROFS, EXDEV] {
        let denial = explain(&auto(), Operation::Write, "/etc/x", errno).unwrap();
        assert_eq!((denial.layer, denial.grade, denial.errno), (Layer::Landlock, Grade::Proved, Some(errno)));
        assert_eq!(denial.missing_right.to_string(), "write /etc/x");
        assert_eq!(denial.grant.as_deref(), Some("--write /etc/x"));
    }
}

#[test]
fn grants_by_place() {
    let grant = |standing: &StandingRights, path: &str| {
        explain(standing, Operation::Write, path, EACCES).map(|denial| denial.grant)
    };
    let said = |text: &str| Some(Some(text.to_owned()));
    assert_eq!(grant(&auto(), "/home/me/a b"), said("--write '/home/me/a b'"));
    assert_eq!(grant(&auto(), "/home/me/it's"), said(r"--write '/home/me/it'\''s'"));
    assert_eq!(grant(&deny(), "/home/me/p/src/x"), said("--mode auto"));
    assert_eq!(grant(&deny(), "/home/me/q"), said("--write /home/me/q"));
    // No flag opens hidden paths, files that the host runs later, and kernel file systems.
    assert_eq!(grant(&auto(), "/home/me/.ssh/x"), Some(None));
    assert_eq!(grant(&auto(), "/home/me/p/.git/hooks/pre-commit"), Some(None));
    assert_eq!(grant(&auto(), "/proc/sys/kernel/x"), Some(None));
    // A sibling whose name begins with the project's is not in the project.
    assert_eq!(grant(&auto(), "/home/me/p2/x"), said("--write /home/me/p2/x"));
}

#[test]
fn a_missing_file_is_granted_by_what_exists_above_it() {
    let grant = |path: &str, nearest: &str| {
        let access = FailedAccess {
            operation: Operation::Write,
            path: path.into(),
            errno: EACCES,
            permitted_by_mode: true,
            nearest: Some(nearest.into()),
        };
        explain_access(&auto(), access).unwrap().grant
    };
    assert_eq!(grant("/srv/new/deep/er", "/srv"), Some("--write /srv".to_owned()));
    assert_eq!(grant("/new/er", "/"), None);
    // A worker could claim anything: only a directory above the path counts, and nothing opens a closed one.
    assert_eq!(grant("/srv/new", "/etc"), Some("--write /srv/new".to_owned()));
    assert_eq!(grant("/home/me/.ssh/new", "/home/me"), None);
}

#[test]
fn neither_the_home_nor_what_holds_the_project_is_offered_by_a_hint() {
    let standing = StandingRights { home: Some("/home/me".into()), ..auto() };
    let made_in = |place: &str| {
        let access = FailedAccess {
            operation: Operation::Write,
            path: format!("{place}/new").as_str().into(),
            errno: EACCES,
            permitted_by_mode: true,
            nearest: Some(place.into()),
        };
        let denial = explain_access(&standing, access).unwrap();
        (denial.grant, denial.missing_right.value().is_some_and(MissingRight::takes_too_much))
    };
    assert_eq!(made_in("/home/me"), (None, true));
    assert_eq!(made_in("/home"), (None, true));
    assert_eq!(made_in("/home/me/notes"), (Some("--write /home/me/notes".to_owned()), false));
    let removed =
        first(&standing, &shell("rm /home/me/x"), "rm: cannot remove '/home/me/x': Permission denied");
    assert!(removed.as_ref().is_some_and(|denial| denial.grant.is_none()), "{removed:?}");
    let elsewhere = StandingRights { project: "/srv/a/p".into(), home: None, ..auto() };
    assert_eq!(flags::for_write(&elsewhere, &"/srv/a".into()), None, "it holds the project");
    assert_eq!(flags::for_write(&elsewhere, &"/srv/b".into()).as_deref(), Some("--write /srv/b"));
}

#[test]
fn hidden_read_is_proved_and_nothing_can_allow_it() {
    let denial = explain(&auto(), Operation::Read, "/home/me/.ssh/id_rsa", EACCES).unwrap();
    assert_snapshot!(denial, @"blocked by the kernel (Landlock): read /home/me/.ssh/id_rsa; missing access: read /home/me/.ssh/id_rsa; the path is hidden, and no flag makes it readable: do without this path, or ask the user to copy the needed file into the project");
    let denial = explain(&auto(), Operation::Execute, "/home/me/.ssh/run", EACCES).unwrap();
    assert_snapshot!(denial, @"blocked by the kernel (Landlock): execute /home/me/.ssh/run; missing access: execute /home/me/.ssh/run; the path is hidden, and no flag makes it readable: do without this path, or ask the user to copy the needed file into the project");
}

#[test]
fn network_is_a_matter_of_the_mediator() {
    let denial = explain(&auto(), Operation::Network, "", EPERM).unwrap();
    assert_eq!((denial.layer, denial.grant.as_deref()), (Layer::Mediation, Some("--net on")));
    assert_eq!(explain(&online(auto()), Operation::Network, "", EPERM), None);
}

#[test]
fn nothing_is_claimed_of_what_the_rights_cover() {
    for path in ["/home/me/p", "/home/me/p/a", "/tmp/bw-1/x"] {
        assert_eq!(explain(&auto(), Operation::Write, path, EACCES), None, "{path}");
    }
    for path in ["/etc/passwd", "/home/me/p/a", "/home/me/.sshx"] {
        assert_eq!(explain(&auto(), Operation::Read, path, EACCES), None, "{path}");
        assert_eq!(explain(&auto(), Operation::Execute, path, EACCES), None, "{path}");
    }
}

#[test]
fn plain_permissions_and_other_failures_are_no_denials() {
    let access = |errno, permitted_by_mode| FailedAccess {
        operation: Operation::Write,
        path: "/etc/x".into(),
        errno,
        permitted_by_mode,
        nearest: None,
    };
    assert_eq!(explain_access(&auto(), access(EACCES, false)), None);
    assert_eq!(explain_access(&auto(), access(ENOENT, true)), None);
    assert_eq!(explain_access(&auto(), access(ENOSPC, true)), None);
    assert!(explain_access(&auto(), access(EACCES, true)).is_some(), "the positive twin");
    let error = ToolError { kind: ToolErrorKind::Refused, message: "no".to_owned(), access: None };
    assert_eq!(denied::explain(&auto(), &error), None);
}
