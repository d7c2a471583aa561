use ipc::denial::{Denial, Grade};
use ipc::named::{Asked, Permits};
use ipc::tool::{CommandExit, CommandResult};
use libc::{EACCES, EPERM, EROFS};

use super::likely::{ended, full, shell};
use super::{auto, open_places};
use crate::judgement::{StandingRights, denied};

/// Returns the denials after the worker has repeated the access and the kernel has answered with `asked`.
fn tried(
    standing: &StandingRights,
    command: &str,
    output: &str,
    asked: Asked,
    permits: Permits,
) -> Vec<Denial> {
    let call = shell(command);
    let mut named = open_places(standing, &call, output);
    for place in &mut named {
        (place.asked, place.permits) = (asked, permits);
    }
    denied::likely(standing, &call, &CommandResult { named, ..ended(CommandExit::Code(1), output) })
}

#[test]
fn what_the_kernel_refuses_again_is_proved() {
    let all = |errno| Asked { read: Some(errno), write: Some(errno), remove: Some(errno) };
    let file = Permits { execute: false, ..Permits::ALL };
    let denied = "touch: cannot touch '/etc/x': Permission denied";
    let read_only = "touch: cannot touch '/etc/x': Read-only file system";
    let grade = |standing: &StandingRights, output: &str, asked: Asked| {
        let found = tried(standing, "x", output, asked, file);
        found.first().map(|denial| (denial.grade, denial.errno))
    };
    assert_eq!(grade(&auto(), denied, all(EACCES)), Some((Grade::Proved, Some(EACCES))));
    assert_eq!(grade(&full(), read_only, all(EROFS)), Some((Grade::Proved, Some(EROFS))));
    // Another error than the program met, one that the sandbox never gives, and no repeated access.
    for (standing, output, asked) in [
        (full(), denied, all(EROFS)),
        (auto(), "rm: cannot remove '/etc/x': Operation not permitted", all(EPERM)),
        (auto(), denied, Asked::default()),
    ] {
        assert_eq!(grade(&standing, output, asked), Some((Grade::Likely, None)), "{output} {asked:?}");
    }
    // The kernel would have permitted the access, so the sandbox did not deny it.
    assert_eq!(grade(&auto(), denied, all(0)), None);
}

#[test]
fn the_same_answer_to_another_act_proves_nothing() {
    let refused = Asked { read: None, write: Some(EACCES), remove: None };
    let file = Permits { execute: false, ..Permits::ALL };
    let grade = |output: &str, permits| {
        tried(&auto(), "x", output, refused, permits).first().map(|denial| denial.grade)
    };
    // The command may have tried to execute the file, which is not executable.
    let unclear = "tool: /srv/file: Permission denied";
    assert_eq!(grade(unclear, file), Some(Grade::Likely));
    assert_eq!(grade(unclear, Permits::ALL), Some(Grade::Proved));
    // Landlock has no rule for modes, and removing a name is a right to its directory.
    assert_eq!(
        grade("chmod: changing permissions of '/srv/file': Permission denied", file),
        Some(Grade::Likely)
    );
    assert_eq!(grade("rm: cannot remove '/srv/file': Permission denied", file), Some(Grade::Likely));
    assert_eq!(grade("ln: cannot create '/srv/file': Invalid cross-device link", file), None);
    for starter in ["env: '/srv/file': Permission denied", "make: /srv/file: Permission denied"] {
        assert_eq!(grade(starter, file), None, "{starter}");
    }
}
