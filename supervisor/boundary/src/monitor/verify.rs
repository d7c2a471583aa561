//! What the supervisor sees with its own eyes of a worker: `/proc/PID/status`, `proc_pid_status(5)`.
//!
//! It cannot show a Landlock domain; for that the broker tries forbidden acts and reports them.

use std::fs::File;
use std::io::{self, Read};

use ipc::confinement::Identity;

/// Why a process is not taken for confined.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum VerifyError {
    /// Its status cannot be read.
    #[error("cannot read the status of process {pid}: {error}")]
    Unreadable {
        /// The process.
        pid: u32,
        error: String,
    },
    /// A field has a value that a confined process cannot have.
    #[error("process {pid} is not confined: {field} is {found}, expected {expected}")]
    Field {
        /// The process.
        pid: u32,
        /// The field's name.
        field: &'static str,
        /// What it says.
        found: String,
        /// What it has to say.
        expected: String,
    },
}

/// The fields of a confined process: filter mode, no new privileges, no capability in any set.
const EXPECTED: [(&str, &str); 7] = [
    ("Seccomp", "2"),
    ("NoNewPrivs", "1"),
    ("CapInh", "0000000000000000"),
    ("CapPrm", "0000000000000000"),
    ("CapEff", "0000000000000000"),
    ("CapAmb", "0000000000000000"),
    ("TracerPid", "0"),
];

/// Checks from outside that a process has filters, no new privileges and no capabilities, and that it runs as `identity` in
/// every respect, where one is given.
pub fn verify_confined(pid: u32, identity: Option<Identity>) -> Result<(), VerifyError> {
    let unreadable = |error: io::Error| VerifyError::Unreadable { pid, error: error.to_string() };
    let status = read_status(pid).map_err(unreadable)?;
    judge(pid, &status)?;
    identity.map_or(Ok(()), |identity| judge_identity(pid, &status, identity))
}

/// The file says that it is empty, so that reading it without room would begin with 32 bytes.
fn read_status(pid: u32) -> io::Result<String> {
    let mut status = String::with_capacity(4 << 10);
    File::open(format!("/proc/{pid}/status"))?.read_to_string(&mut status)?;
    Ok(status)
}

fn judge(pid: u32, status: &str) -> Result<(), VerifyError> {
    EXPECTED.into_iter().try_for_each(|(field, expected)| compare(pid, status, field, expected))
}

/// Real, effective, saved and file system ids, and no other group.
fn judge_identity(pid: u32, status: &str, identity: Identity) -> Result<(), VerifyError> {
    let four = |id: u32| [id; 4].map(|id| id.to_string()).join("\t");
    compare(pid, status, "Uid", &four(identity.uid))?;
    compare(pid, status, "Gid", &four(identity.gid))?;
    compare(pid, status, "Groups", "")
}

fn compare(pid: u32, status: &str, field: &'static str, expected: &str) -> Result<(), VerifyError> {
    let found = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':')).map(str::trim);
    if found == Some(expected) {
        return Ok(());
    }
    let (found, expected) = (found.unwrap_or("absent").to_owned(), expected.to_owned());
    Err(VerifyError::Field { pid, field, found, expected })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(seccomp: &str, effective: &str) -> String {
        format!(
            "Name:\tx\nTracerPid:\t0\nCapInh:\t{0}\nCapPrm:\t{0}\nCapEff:\t{effective}\nCapAmb:\t{0}\n\
             NoNewPrivs:\t1\nSeccomp:\t{seccomp}\nSeccomp_filters:\t1\n",
            "0000000000000000"
        )
    }

    #[test]
    fn a_confined_process_is_taken_for_one() {
        assert_eq!(judge(7, &status("2", "0000000000000000")), Ok(()));
    }

    #[test]
    fn each_missing_property_is_named() {
        let error = judge(7, &status("0", "0000000000000000")).unwrap_err().to_string();
        assert_eq!(error, "process 7 is not confined: Seccomp is 0, expected 2");
        let error = judge(7, &status("2", "0000000000000001")).unwrap_err().to_string();
        assert!(error.contains("CapEff is 0000000000000001"), "{error}");
        assert!(judge(7, "").unwrap_err().to_string().contains("Seccomp is absent"));
    }

    #[test]
    fn a_process_of_another_user_is_named() {
        let status = "Uid:\t5\t5\t5\t5\nGid:\t6\t6\t6\t6\nGroups:\t \n";
        let judge = |uid, gid, status: &str| {
            judge_identity(7, status, Identity { uid, gid }).map_err(|error| error.to_string())
        };
        assert_eq!(judge(5, 6, status), Ok(()));
        assert!(judge(0, 6, status).unwrap_err().contains("Uid is 5"));
        assert!(judge(5, 0, status).unwrap_err().contains("Gid is 6"));
        let more = status.replace("Groups:\t ", "Groups:\t27 ");
        assert!(judge(5, 6, &more).unwrap_err().contains("Groups is 27"));
    }

    #[test]
    fn this_test_itself_is_not_confined() {
        assert!(verify_confined(std::process::id(), None).is_err());
    }
}
