use std::fmt::Write;

use insta::assert_snapshot;
use ipc::denial::Grade;
use ipc::rights::{Execution, Grant};
use ipc::tool::{Access, ShellExec};

use super::{auto, deny, online};
use crate::activity::Activity;
use crate::judgement::denial::unwritable;
use crate::judgement::{ApprovalMode, Ask, StandingRights, Verdict, denied, flags, judge, offer};
use crate::modes::Position;
use crate::tools::{ExternalCall, Invocation, Registry, SupervisorCall};

fn verdict(standing: &StandingRights, name: &str, input: &str) -> String {
    let invocation = Registry::for_activity(Activity::Execute).parse(name, input).unwrap();
    match judge::call(standing, &invocation, Position::FIRST) {
        Verdict::Run => "run".to_owned(),
        Verdict::Prepare => "prepare".to_owned(),
        Verdict::Ask(Ask { kind, grant }) => format!("ask {kind:?}: {grant}"),
        Verdict::Deny(denial) => denial.to_string(),
    }
}

#[test]
fn file_tools_go_to_the_kernel_whatever_they_name() {
    for standing in [auto(), deny()] {
        for (name, input) in [
            ("read_file", r#"{"path":"/home/me/.ssh/id_rsa"}"#),
            ("list_directory", r#"{"path":"/home/me/.ssh"}"#),
            ("search_files", r#"{"pattern":"x","path":"/etc"}"#),
            ("write_file", r#"{"path":"/etc/x","content":""}"#),
            ("edit_file", r#"{"path":"../../x","old_string":"a","new_string":"b"}"#),
        ] {
            assert_eq!(verdict(&standing, name, input), "run", "{name}");
        }
    }
}

#[test]
fn commands_by_what_they_declare() {
    let mut no_commands = auto();
    no_commands.rights.exec = Execution::Denied;
    let standings =
        [("auto", auto()), ("deny", deny()), ("auto, net on", online(auto())), ("no commands", no_commands)];
    let inputs = [
        r#"{"command":"ls"}"#,
        r#"{"command":"ls","access":"read"}"#,
        r#"{"command":"ls","access":"write"}"#,
        r#"{"command":"ls","network":false}"#,
        r#"{"command":"ls","network":true}"#,
        r#"{"command":"ls","access":"read","network":true}"#,
    ];
    let mut seen = String::new();
    for (name, standing) in &standings {
        for input in inputs {
            writeln!(seen, "{name} {input}\n    {}", verdict(standing, "shell_exec", input)).unwrap();
        }
    }
    assert_snapshot!(seen, @r#"
    auto {"command":"ls"}
        run
    auto {"command":"ls","access":"read"}
        run
    auto {"command":"ls","access":"write"}
        run
    auto {"command":"ls","network":false}
        run
    auto {"command":"ls","network":true}
        blocked by the policy: reach the network; missing access: network; the user can allow it with --net on
    auto {"command":"ls","access":"read","network":true}
        blocked by the policy: reach the network; missing access: network, which a command with access "read" never has; it cannot be allowed here
    deny {"command":"ls"}
        run
    deny {"command":"ls","access":"read"}
        run
    deny {"command":"ls","access":"write"}
        blocked by the policy: write /home/me/p; missing access: write /home/me/p; the user can allow it with --mode auto
    deny {"command":"ls","network":false}
        run
    deny {"command":"ls","network":true}
        blocked by the policy: reach the network; missing access: network; the user can allow it with --net on
    deny {"command":"ls","access":"read","network":true}
        blocked by the policy: reach the network; missing access: network, which a command with access "read" never has; it cannot be allowed here
    auto, net on {"command":"ls"}
        run
    auto, net on {"command":"ls","access":"read"}
        run
    auto, net on {"command":"ls","access":"write"}
        run
    auto, net on {"command":"ls","network":false}
        run
    auto, net on {"command":"ls","network":true}
        run
    auto, net on {"command":"ls","access":"read","network":true}
        blocked by the policy: reach the network; missing access: network, which a command with access "read" never has; it cannot be allowed here
    no commands {"command":"ls"}
        blocked by the policy: execute ls; missing access: run commands; it cannot be allowed here
    no commands {"command":"ls","access":"read"}
        blocked by the policy: execute ls; missing access: run commands; it cannot be allowed here
    no commands {"command":"ls","access":"write"}
        blocked by the policy: execute ls; missing access: run commands; it cannot be allowed here
    no commands {"command":"ls","network":false}
        blocked by the policy: execute ls; missing access: run commands; it cannot be allowed here
    no commands {"command":"ls","network":true}
        blocked by the policy: execute ls; missing access: run commands; it cannot be allowed here
    no commands {"command":"ls","access":"read","network":true}
        blocked by the policy: execute ls; missing access: run commands; it cannot be allowed here
    "#);
}

fn ask() -> StandingRights {
    StandingRights { mode: ApprovalMode::Ask, ..deny() }
}

#[test]
fn a_writing_command_runs_under_whatever_write_root_there_is() {
    let writes =
        |standing: &StandingRights| verdict(standing, "shell_exec", r#"{"command":"ls","access":"write"}"#);
    let with = |mut standing: StandingRights, roots: &[&str]| {
        standing.caches = Some("/home/me/.cache/bailiwick/c".into());
        standing.rights.write.extend(roots.iter().map(|root| (*root).into()));
        standing
    };
    let roots = ["/srv/x", "/home/me/p/src", "/home/me/p/notes.txt", "/home/me"];
    for (standing, is_fixed) in [(ask(), false), (ask(), true), (deny(), false), (deny(), true)] {
        let standing = StandingRights { is_fixed, ..standing };
        for root in roots {
            assert_eq!(writes(&with(standing.clone(), &[root])), "run", "{:?} {root}", standing.mode);
        }
        // Every agent may write these, so they do not count as a right to write.
        let private = with(standing.clone(), &["/home/me/.cache/bailiwick/c"]);
        let said = writes(&private);
        let expected =
            if standing.mode == ApprovalMode::Ask { "ask Exec: write /home/me/p" } else { "blocked" };
        assert!(said.starts_with(expected), "{said}");
    }
}

#[test]
fn a_denied_writing_command_is_still_offered_the_project() {
    let mut standing = ask();
    standing.rights.write.push("/srv/x".into());
    let call = ShellExec {
        command: "touch a".to_owned(),
        access: Access::Write,
        network: None,
        cwd: None,
        timeout_ms: None,
    };
    let denial = unwritable(&standing, &"/home/me/p/a".into(), Grade::Proved, None);
    let offer = offer::first(&standing, &call, &[denial], &Grant::default()).unwrap();
    assert_eq!(offer.grant.to_string(), "write /home/me/p");
}

#[test]
fn a_call_of_an_external_tool_is_asked_for_or_denied() {
    let call = ExternalCall {
        server: "docs".to_owned(),
        tool: "search".to_owned(),
        json: "{}".to_owned(),
        guest: None,
    };
    let call = Invocation::External(call);
    let said = |standing: &StandingRights, agent| match judge::call(standing, &call, agent) {
        Verdict::Ask(ask) => format!("asked as {:?}, for {:?}", ask.kind, ask.grant.is_empty()),
        Verdict::Deny(denial) => denial.to_string(),
        other => format!("{other:?}"),
    };
    assert_eq!(said(&ask(), Position::FIRST), "asked as ExternalTool, for true");
    // A sub-agent, in a session that asks.
    assert_snapshot!(said(&ask(), Position::SUB), @"blocked by the policy: call search of docs; missing access: an approval of this call; it cannot be allowed here");
    assert_snapshot!(said(&auto(), Position::FIRST), @"blocked by the policy: call search of docs; missing access: an approval of this call; the user can allow it with --mode ask");
    assert_eq!(said(&deny(), Position::FIRST), said(&auto(), Position::FIRST));
}

#[test]
fn what_the_supervisor_serves_itself_runs() {
    let call = Invocation::Supervisor(SupervisorCall { tool: "note".into(), json: "{}".to_owned() });
    for standing in [ask(), auto(), deny()] {
        assert_eq!(judge::call(&standing, &call, Position::FIRST), Verdict::Run);
    }
}

#[test]
fn a_refused_git_configuration_is_told_with_its_right() {
    use ipc::tool::{CommandExit, CommandResult};
    let said = |standing: &StandingRights, head: &str| {
        let (tail, omitted_bytes) = (String::new(), 0);
        let exit = CommandExit::Code(0);
        let result = CommandResult {
            exit,
            head: head.to_owned(),
            omitted_bytes,
            tail,
            saved: None,
            named: Vec::new(),
            process: 0,
            refused: Vec::new(),
            duration_ms: 1,
        };
        denied::git_config_hint(standing, &result)
    };
    let mut standing = auto();
    let refusals = [
        "error: could not write config file .git/config: Device or resource busy\n",
        "Switched.\nerror: could not lock config file /p/.git/config: Read-only file system\n",
    ];
    assert_eq!(said(&standing, refusals[0]), None, "nothing of ours refused it");
    standing.rights.protected.push("/home/me/p/.git/config".into());
    for text in refusals {
        assert!(said(&standing, text).is_some_and(|hint| hint.contains("--write .git/config")), "{text}");
    }
    assert_eq!(said(&standing, "error: could not lock config file .git/config: File exists\n"), None);
    assert_eq!(
        flags::for_write(&standing, &"/home/me/p/.git/config".into()).as_deref(),
        Some("--write .git/config")
    );
}
