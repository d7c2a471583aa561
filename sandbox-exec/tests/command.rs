//! Commands in a domain deeper than their worker's: this test process is the worker.

mod common;

use common::{finish, spec, worker_rights};
use sandbox_exec::command::{CommandDomain, Ending};
use std::fs;

#[test]
fn a_command_runs_and_reports() {
    let project = tempfile::tempdir().unwrap();
    let domain = CommandDomain::prepare(&worker_rights(project.path()), None).unwrap();
    let (output, ending) = finish(
        domain
            .spawn(&spec(project.path(), "echo out; echo err >&2; pwd; exit 3"))
            .unwrap(),
    );
    let here = fs::canonicalize(project.path()).unwrap();
    assert_eq!(output, format!("out\nerr\n{}\n", here.display()));
    assert_eq!(ending, Ending::Exited(3));
}
