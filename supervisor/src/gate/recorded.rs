//! What the kernel recorded that Landlock refused a command, in the words of the rights.

use ipc::confinement::Tier;
use ipc::denial::{Denial, Grade, Layer, Object, Operation};
use ipc::recorded::{Recorded, RecordedAct};
use ipc::tool::{CommandExit, CommandResult};
use libc::EACCES;

use super::Standing;
use super::standing::is_kernel_tree;

impl Standing {
    /// The denials that the kernel has recorded by itself: of opening what plain permissions open, since those are asked first. A
    /// command that ended well has only tried.
    pub(super) fn recorded(&self, result: &CommandResult) -> Vec<Denial> {
        let failed = result.exit != CommandExit::Code(0);
        result.recorded.iter().filter(|_| failed).filter_map(|recorded| self.of_record(recorded)).collect()
    }

    fn of_record(&self, recorded: &Recorded) -> Option<Denial> {
        let path = &recorded.path;
        // In the kernel's own trees others refuse as well, after Landlock: a device's driver, a terminal that is none. A name that
        // would move a terminal's cursor is in no sentence.
        if is_kernel_tree(path) || self.tier == Tier::Full || path.to_string().contains(char::is_control) {
            return None;
        }
        let hidden = !self.rights.allows_read(path);
        let denial = match recorded.act {
            RecordedAct::Read if hidden => self.unreadable(path, Grade::Proved),
            RecordedAct::Write if hidden || !self.allows_write(path) => {
                self.unwritable(path, Grade::Proved, Some(EACCES))
            }
            // What the rights cover is no denial; and names are refused before anybody else is asked.
            RecordedAct::Read | RecordedAct::Write | RecordedAct::Name => return None,
        };
        Some(Denial { errno: Some(recorded.errno), program: program_of(recorded), ..denial })
    }

    /// The same, proved where the kernel has recorded that it refused a change of this name in its directory, or of the place itself.
    /// That plain permissions would have allowed it is what it was likely for.
    pub(super) fn confirmed(denial: Denial, result: &CommandResult) -> Denial {
        let Object::Path(path) = &denial.object else { return denial };
        let directory = path.as_path().parent();
        let is_of_it = |recorded: &&Recorded| {
            let place = recorded.path.as_path();
            recorded.act == RecordedAct::Name && (directory == Some(place) || path.as_path() == place)
        };
        let by_landlock = denial.layer == Layer::Landlock && denial.operation == Operation::Write;
        match result.recorded.iter().find(is_of_it).filter(|_| by_landlock && denial.grade == Grade::Likely) {
            Some(recorded) => Denial {
                grade: Grade::Proved,
                errno: Some(recorded.errno),
                program: program_of(recorded),
                ..denial
            },
            None => denial,
        }
    }
}

/// What the program calls itself, in characters that can be shown.
fn program_of(recorded: &Recorded) -> Option<String> {
    let program = recorded.program.escape_debug().to_string();
    (!program.is_empty()).then_some(program)
}
