//! Verifies from `/proc/PID/status` that a worker is confined (`proc_pid_status(5)`).
//!
//! The file does not show Landlock domains, so the broker tries forbidden actions and reports the results.

use std::fs::File;
use std::io::{self, Read};

use ipc::confinement::Identity;

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum VerifyError {
    #[error("cannot read the status of process {pid}: {error}")]
    Unreadable { pid: u32, error: String },
    #[error("process {pid} is not in the sandbox: {field} is {found}, expected {expected}")]
    Field { pid: u32, field: &'static str, found: String, expected: String },
}

/// Fields of a confined process's status: seccomp filter mode, no new privileges, no capability in any set, no tracer.
const EXPECTED: [(&str, &str); 7] = [
    ("Seccomp", "2"),
    ("NoNewPrivs", "1"),
    ("CapInh", "0000000000000000"),
    ("CapPrm", "0000000000000000"),
    ("CapEff", "0000000000000000"),
    ("CapAmb", "0000000000000000"),
    ("TracerPid", "0"),
];

/// Checks seccomp filter mode, no new privileges, capabilities and, if `identity` is given, the ids of a process.
pub fn verify_confined(pid: u32, identity: Option<Identity>) -> Result<(), VerifyError> {
    let unreadable = |error: io::Error| VerifyError::Unreadable { pid, error: error.to_string() };
    let status = read_status(pid).map_err(unreadable)?;
    judge(pid, &status)?;
    identity.map_or(Ok(()), |identity| judge_identity(pid, &status, identity))
}

/// Reads the status of a process. The buffer has a fixed capacity, since the kernel reports 0 as the file's size.
fn read_status(pid: u32) -> io::Result<String> {
    let mut status = String::with_capacity(4 << 10);
    File::open(format!("/proc/{pid}/status"))?.read_to_string(&mut status)?;
    Ok(status)
}

fn judge(pid: u32, status: &str) -> Result<(), VerifyError> {
    EXPECTED.into_iter().try_for_each(|(field, expected)| compare(pid, status, field, expected))
}

/// Checks that real, effective, saved and file system ids are those of `identity`, without additional groups.
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
        assert_eq!(error, "process 7 is not in the sandbox: Seccomp is 0, expected 2");
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
