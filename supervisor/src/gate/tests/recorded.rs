use insta::assert_snapshot;
use ipc::confinement::Tier;
use ipc::denial::{Denial, Grade, Layer};
use ipc::recorded::{Recorded, RecordedAct};
use ipc::tool::{CommandExit, CommandResult};

use super::likely::{ended, shell};
use super::{auto, open_places};
use crate::gate::Standing;

fn recorded(act: RecordedAct, path: &str) -> Recorded {
    Recorded { program: "tool".to_owned(), act, path: path.into(), errno: 13 }
}

/// What is told of a command that ended so, said this, and was refused that by the kernel's records.
fn told(standing: &Standing, code: i32, output: &str, recorded: &[Recorded]) -> Vec<Denial> {
    let call = shell("x");
    let result = ended(CommandExit::Code(code), output);
    let named = open_places(standing, &call, output);
    standing.denials(&call, &CommandResult { named, recorded: recorded.to_vec(), ..result })
}

fn said(recorded: Recorded) -> String {
    let denials = told(&auto(), 1, "", &[recorded]);
    assert_eq!(denials.len(), 1);
    assert_eq!((denials[0].layer, denials[0].grade), (Layer::Landlock, Grade::Proved));
    denials[0].to_string()
}

#[test]
fn what_was_opened_is_told_with_the_right_that_opens_it() {
    assert_snapshot!(said(recorded(RecordedAct::Write, "/srv/x")), @"denied by the kernel (Landlock): write /srv/x (tried by tool); the missing right is: write /srv/x; the user can allow it with --write /srv/x");
    assert_snapshot!(said(recorded(RecordedAct::Read, "/home/me/.ssh/id")), @"denied by the kernel (Landlock): read /home/me/.ssh/id (tried by tool); the missing right is: read /home/me/.ssh/id; it is hidden, and no flag opens it: do without it, or let the user put a copy of what is needed into the project");
    assert_snapshot!(said(recorded(RecordedAct::Write, "/home/me/.ssh/id")), @"denied by the kernel (Landlock): write /home/me/.ssh/id (tried by tool); the missing right is: write /home/me/.ssh/id; nothing can allow it here");
}

#[test]
fn nothing_is_told_of_what_is_no_denial() {
    let none = |standing: &Standing, code, act, path| {
        assert_eq!(told(standing, code, "", &[recorded(act, path)]), [], "{path}");
    };
    // The rights cover it: what lies beside a hidden place may be out of reach for another reason.
    none(&auto(), 1, RecordedAct::Write, "/home/me/p/x");
    none(&auto(), 1, RecordedAct::Read, "/srv/x");
    // Whoever opens these is answered by a driver as well, and who does without is not hindered.
    for path in ["/dev/tty", "/proc/1/environ", "/sys/power/state"] {
        none(&auto(), 1, RecordedAct::Write, path);
    }
    none(&auto(), 0, RecordedAct::Write, "/srv/x");
    none(&auto().seen_in(Tier::Full), 1, RecordedAct::Write, "/srv/x");
    // Its directory may be closed to the user, or it may not be empty.
    none(&auto(), 1, RecordedAct::Name, "/srv");
}

#[test]
fn a_record_proves_what_the_output_names() {
    let grades = |output: &str, records: &[Recorded]| {
        let denials = told(&auto(), 1, output, records);
        denials.iter().map(|denial| denial.grade).collect::<Vec<_>>()
    };
    let made = "mkdir: cannot create directory '/srv/a/new': Permission denied";
    assert_eq!(grades(made, &[]), [Grade::Likely]);
    assert_eq!(grades(made, &[recorded(RecordedAct::Name, "/srv/a")]), [Grade::Proved]);
    assert_eq!(grades(made, &[recorded(RecordedAct::Name, "/srv")]), [Grade::Likely], "of another directory");
    let opened = "touch: cannot touch '/srv/x': Permission denied";
    assert_eq!(grades(opened, &[recorded(RecordedAct::Write, "/srv/x")]), [Grade::Proved], "told once");
    let other = [recorded(RecordedAct::Write, "/srv/y")];
    assert_eq!(grades(opened, &other), [Grade::Proved, Grade::Likely], "of another");
}

#[test]
fn no_more_is_told_than_of_anything_else() {
    let many: Vec<_> = (0..99).map(|n| recorded(RecordedAct::Write, &format!("/srv/{n}"))).collect();
    assert_eq!(told(&auto(), 1, "", &many).len(), 4);
}

#[test]
fn names_that_programs_choose_stay_in_their_place() {
    let hostile =
        Recorded { program: "a\u{1b}[2J\n".to_owned(), ..recorded(RecordedAct::Write, "/srv/ä b") };
    assert!(!said(hostile).contains(char::is_control));
    for path in ["/srv/\u{1b}[2Jx", "/srv/x\ny"] {
        assert_eq!(told(&auto(), 1, "", &[recorded(RecordedAct::Write, path)]), [], "{path:?}");
    }
}
