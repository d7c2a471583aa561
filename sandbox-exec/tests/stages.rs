//! Tests of each stage's exit code, of the reports, and of starts that fail rather than confine a program partly.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stderr,
    reason = "a test fails by panicking, and says aloud what it skips"
)]

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::CommandExt;
use std::process::Command;

use common::order::{encoded, order, ordered};
use common::place::{as_each_user, errors, text};
use ipc::confinement::{BrokerReport, Confinement};
use nix::libc;
use sandbox_exec::platform::{Platform, SCOPES};
use sandbox_exec::stage::Stage;
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};

#[test]
fn the_broker_reports_the_start_and_the_end() {
    as_each_user(|place| {
        let rights = encoded(&order(place));
        let (output, reports) = ordered(place, &rights, &["/bin/bash", "-c", "echo $$; exit 3"]);
        assert_eq!(output.status.code(), Some(3), "{}", errors(&output));
        let [BrokerReport::Started { pid, ruleset }, BrokerReport::Ended { status: 3 }] = &reports[..] else {
            panic!("{reports:?}");
        };
        // In a pid namespace of its own it has another number; `the_reported_pid_is_the_hosts` looks at that
        // one.
        let own = text(&output).trim() == pid.to_string();
        assert_eq!(own, !place.full(), "{pid}");
        assert_eq!(ruleset.tier, place.tier);
        assert!(ruleset.landlock_abi > 0 && ruleset.rules > 5 && ruleset.seccomp_rules > 50);
        assert_eq!(ruleset.missing.is_empty(), place.full(), "{:?}", ruleset.missing);
        let marked = ruleset.attempts.iter().any(|attempt| attempt.act.starts_with("change an attribute"));
        assert_eq!(marked, !place.full(), "{:?}", ruleset.attempts);
        assert!(ruleset.attempts.len() >= 4 && ruleset.attempts.iter().all(|attempt| attempt.denied));
    });
}

#[test]
fn the_temp_directory_and_the_environment_come_with_the_rights() {
    as_each_user(|place| {
        let mut confinement = order(place);
        place.make("project/tmp/keep", "");
        confinement.temp = Some(place.path("project/tmp").into());
        confinement.environment.set.push(("MODE".into(), b"test".to_vec()));
        let script = "echo $TMPDIR $MODE $PWD";
        let (output, _) = ordered(place, &encoded(&confinement), &["/bin/bash", "-c", script]);
        let (temp, project) = (place.path("project/tmp"), place.path("project"));
        let temp = if place.full() { "/tmp".into() } else { temp };
        assert_eq!(text(&output), format!("{} test {}\n", temp.display(), project.display()));
    });
}

#[test]
fn a_failed_stage_is_the_exit_code_a_line_and_a_report() {
    as_each_user(|place| {
        let good = order(place);
        let with = |change: &dyn Fn(&mut Confinement)| {
            let mut changed = good.clone();
            change(&mut changed);
            encoded(&changed)
        };
        let plain = with(&|_| {});
        place.make("project/data", "not a program");
        for (stage, rights, program, message) in [
            (Stage::Rights, b"garbage".to_vec(), "true", "exceeds the limit"),
            (Stage::Rights, [&plain[..4], b"?", &plain[5..]].concat(), "true", "protocol version 63"),
            (Stage::Rights, plain[..plain.len() - 1].to_vec(), "true", "ended inside a frame"),
            (Stage::Rights, vec![], "true", "nobody ordered anything"),
            (Stage::Rules, with(&|order| order.rights.write.push("/proc/sys".into())), "true", "/proc/sys"),
            (Stage::Rules, with(&|order| order.rights.write.push("/nowhere".into())), "true", "/nowhere"),
            (
                Stage::Directory,
                with(&|order| order.project = "/nowhere".into()),
                "true",
                "cannot enter /nowhere",
            ),
            (
                Stage::Execute,
                plain.clone(),
                "no-such-program",
                "cannot execute no-such-program: No such file",
            ),
            (Stage::Execute, plain.clone(), "./data", "cannot execute ./data: Permission denied"),
        ] {
            let (output, reports) = ordered(place, &rights, &[program]);
            assert_eq!(output.status.code(), Some(stage.code().into()), "{stage}: {}", errors(&output));
            let line = errors(&output);
            assert!(
                line.starts_with(&format!("sandbox-exec: {stage}: ")) && line.contains(message),
                "{line}"
            );
            let [BrokerReport::Failed { code, stage: name, detail, .. }] = &reports[..] else {
                panic!("{reports:?}")
            };
            assert_eq!((*code, name.clone()), (stage.code(), stage.to_string()));
            assert!(line.contains(detail));
        }
    });
}

#[test]
fn wrong_usage_is_the_first_stage() {
    as_each_user(|place| {
        for flags in [&["--bogus"][..], &["--net", "a..b"], &["--rights-fd", "x"]] {
            let output = place.sandbox(flags).arg("true").output().unwrap();
            assert_eq!(output.status.code(), Some(100));
            assert!(errors(&output).contains("usage: sandbox-exec"));
        }
        let output =
            place.command(place.path("sandbox-exec")).args(["--status-fd", "77", "true"]).output().unwrap();
        assert_eq!(output.status.code(), Some(Stage::Descriptors.code().into()));
        let output = place.sandbox(&["-C", "/nowhere"]).arg("true").output().unwrap();
        assert_eq!(output.status.code(), Some(Stage::Rights.code().into()));
    });
}

fn kernel(command: &mut Command, call: libc::c_long, errno: u32) {
    let rules = BTreeMap::from([(call, vec![])]);
    let arch = std::env::consts::ARCH.try_into().unwrap();
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, SeccompAction::Errno(errno), arch).unwrap();
    let program: BpfProgram = filter.try_into().unwrap();
    // SAFETY: attaching a program makes two system calls and allocates nothing.
    unsafe {
        command.pre_exec(move || {
            seccompiler::apply_filter(&program).map_err(|_| std::io::Error::last_os_error())
        });
    }
}

#[test]
fn a_kernel_without_a_layer_is_refused_unless_told_otherwise() {
    as_each_user(|place| {
        for call in [libc::SYS_landlock_create_ruleset, libc::SYS_seccomp] {
            let run = |flags: &[&str]| {
                let mut command = place.sandbox(flags);
                kernel(&mut command, call, libc::ENOSYS.cast_unsigned());
                command.args(["/bin/bash", "-c", "echo ran"]).output().unwrap()
            };
            let refused = run(&[]);
            assert_eq!(refused.status.code(), Some(Stage::Platform.code().into()), "{}", errors(&refused));
            assert!(
                errors(&refused).contains("is not available")
                    || errors(&refused).contains("are not available")
            );
            assert_eq!(text(&refused), "");
            assert_eq!(text(&run(&["--allow-degraded"])), "ran\n");
        }
    });
}

#[test]
fn a_layer_that_only_says_it_is_in_force_is_found_out() {
    as_each_user(|place| {
        let has_scopes = Platform::probe().abi >= SCOPES;
        for net in ["off", "on"] {
            let mut command = place.sandbox(&["--net", net]);
            kernel(&mut command, libc::SYS_landlock_restrict_self, 0);
            let output = command.args(["/bin/bash", "-c", "echo ran"]).output().unwrap();
            assert_eq!(output.status.code(), Some(Stage::Attempt.code().into()), "{}", errors(&output));
            // On the host's network the broker is in one as well, and tries that first.
            let is_scoped = has_scopes && !(place.full() && net == "off");
            let got = if is_scoped {
                "\"reach an abstract unix socket of the host\" was not denied"
            } else {
                "\"write outside the writable directories\" was not denied"
            };
            assert!(errors(&output).contains(got), "{net}: {}", errors(&output));
            assert_eq!(text(&output), "");
        }
    });
}

#[test]
fn a_link_as_a_root_of_ordered_rights_is_refused() {
    as_each_user(|place| {
        std::os::unix::fs::symlink("project", place.path("link")).unwrap();
        let mut linked = order(place);
        linked.rights.write = vec![place.path("link").into()];
        let (output, _) = ordered(place, &encoded(&linked), &["true"]);
        assert_eq!(output.status.code(), Some(Stage::Rules.code().into()));
        assert!(errors(&output).contains("is a symbolic link"), "{}", errors(&output));
        fs::remove_file(place.path("link")).unwrap();
    });
}
