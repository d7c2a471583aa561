use gate::activity::Activity;
use insta::assert_snapshot;
use ipc::id::AgentId;
use ipc::rights::{Network, Reach, RightsChange};

use super::script::{Script, config, file, read, run, standing, text};
use crate::conversation::StopReason;
use crate::core::{AgentConfig, Effect};

fn at_work() -> Script {
    let mut script = Script::new();
    script.ready(1).user("go").reply(1, &[run("a", "sleep 9"), read("b", "x")], StopReason::ToolUse);
    script.outcome(2, file("x")).lines();
    script
}

#[test]
fn calls_are_interrupted_and_the_model_hears_of_it_with_its_new_rights() {
    let mut script = at_work();
    script.net(Network::On);
    assert_snapshot!(script.lines(), @r#"
    cancel call 1
    log finished 1 a Interrupted "interrupted: the access changed; the call was ended with everything that it had started" by Supervisor
    replace the worker
    "#);
    // Later messages of the replaced worker have no effect.
    script.outcome(1, file("late")).lost(1);
    assert_snapshot!(script.lines(), @"");
    script.ready(2);
    assert_snapshot!(script.lines(), @r#"
    log rights changed: generation 2, writes in the project, $TMPDIR · network on · secrets hidden by Supervisor
    log context rights "<rights>\nThe user changed your rights. What ran was ended for it; from now on they are:\nnetwork: on\nyour rights: writes in the project, $TMPDIR · network on · secrets hidden\n</rights>" by Supervisor
    log requested 2.1 by Supervisor
    start 2 with 3 messages
    "#);
    let last = script.last_messages();
    let last = last.lines().last().unwrap();
    assert!(
        last.starts_with(r#"user [error a: "interrupted: the access changed"#),
        "results come first: {last}"
    );
    assert!(last.contains("[result b") && last.contains("network on"), "{last}");
}

#[test]
fn a_reply_that_comes_in_is_untouched_and_its_calls_run_on_the_new_worker() {
    let mut script = Script::new();
    script.ready(1).user("go").started(1).delta(1, 0, "Let me").lines();
    script.net(Network::On);
    assert_snapshot!(script.lines(), @"replace the worker");
    script.reply(1, &[text("Let me look."), read("a", "x")], StopReason::ToolUse);
    assert!(script.lines().contains("dispatch 1 read_file"), "the driver holds it until the worker is ready");
    script.outcome(1, file("x"));
    assert!(!script.lines().contains("start 2"), "the model is not asked before it can be told");
    script.ready(2);
    assert!(script.lines().ends_with("log requested 2.1 by Supervisor\nstart 2 with 3 messages\n"));
}

#[test]
fn an_agent_at_rest_is_told_with_the_next_words_of_the_user() {
    let mut script = Script::new();
    script.ready(1).net(Network::On).ready(2).lines();
    script.user("go");
    let told = script.last_messages();
    assert!(told.contains("network: on") && told.find("<rights>") < told.find("go"), "{told}");
}

#[test]
fn the_network_comes_back_with_the_reach_of_the_start() {
    let standing = standing().with_reach(Reach { host: true, ..Reach::default() });
    let mut script = Script::with(AgentConfig { standing, ..config() });
    for generation in [2, 4] {
        script.net(Network::On).ready(generation);
        let lines = script.lines();
        assert!(
            lines.contains("writes in the project, $TMPDIR · network on +host · secrets hidden by"),
            "{lines}"
        );
        script.net(Network::Off).ready(generation + 1);
        assert!(script.lines().contains("· network off · secrets hidden by"));
    }
}

#[test]
fn a_change_that_changes_nothing_says_so_and_replaces_nothing() {
    let mut script = at_work();
    script.net(Network::Off);
    assert_snapshot!(script.lines(), @"log notice rights_unchanged nothing changed: the network is already off by Supervisor");
}

#[test]
fn neither_a_planner_nor_a_sub_agent_is_given_more() {
    let mut script = Script::with(AgentConfig { activity: Activity::Plan, ..config() });
    script.net(Network::On);
    assert_snapshot!(script.lines(), @"log notice rights_refused the access was not changed: the network stays off while a plan is made by Supervisor");
    let mut script = Script::with(AgentConfig { id: AgentId::from("1.2"), ..config() });
    script.net(Network::On).set_rights(RightsChange::RemoveWrite { path: "/p".into() });
    assert!(!script.effects.iter().any(|effect| matches!(effect, Effect::ReplaceWorker { .. })));
    assert_eq!(script.lines().matches("the access of a sub-agent cannot be changed").count(), 2);
}

#[test]
fn changes_wait_for_each_other_and_only_the_last_lets_the_agent_go_on() {
    let mut script = at_work();
    script.net(Network::On).net(Network::Off).net(Network::Off).lines();
    script.ready(2);
    let lines = script.lines();
    assert!(lines.contains("network on") && lines.ends_with("replace the worker\n"), "{lines}");
    script.ready(3);
    let lines = script.lines();
    assert!(
        lines.starts_with("log rights changed: generation 3") && lines.contains("network off"),
        "{lines}"
    );
    assert!(lines.contains("nothing changed: the network is already off"), "{lines}");
    assert!(lines.ends_with("start 2 with 3 messages\n"), "{lines}");
}

#[test]
fn without_a_new_worker_calls_fail_and_the_same_change_may_be_tried_again() {
    let mut script = at_work();
    script.net(Network::On).not_replaced();
    let lines = script.lines();
    assert!(
        lines.contains("log notice no_worker the access was changed, but no worker could be started"),
        "{lines}"
    );
    assert!(lines.ends_with("start 2 with 3 messages\n"), "the model hears of it: {lines}");
    script.net(Network::On);
    assert_snapshot!(script.lines(), @"replace the worker");
    script.ready(3);
    assert!(script.lines().starts_with("log rights changed: generation 3"));
}

#[test]
fn an_interrupt_does_not_wait_for_the_worker() {
    let mut script = at_work();
    script.net(Network::On).lines();
    script.interrupt();
    assert_snapshot!(script.lines(), @r#"finish interrupted text="" steps=1 tokens=115 message=None"#);
    script.ready(2);
    assert_snapshot!(script.lines(), @"log rights changed: generation 2, writes in the project, $TMPDIR · network on · secrets hidden by Supervisor");
    script.user("on");
    assert!(script.last_messages().contains("network: on"));
}
