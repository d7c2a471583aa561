//! Tests web pages that the model requests: the packets in the test's internet, the approvals, and compromised guests.

use std::path::Path;

use boundary::monitor::{FetchSpec, GuestLog};
use ipc::confinement::{Confinement, TierChoice};
use ipc::rights::{Reach, Rights};
use serde_json::{Value, json};
use tests::replies::{model, model_of_agents};
use tests::served::Served;
use tests::{Finished, replies};

use crate::gateway::{secrets, under};
use crate::ground::{Ground, PYTHON, on_a_machine};

const PAGE: &str = "http://a.example/page?q=1";

fn fetching(urls: &[&str]) -> Vec<(&'static str, Value)> {
    urls.iter().map(|url| ("fetch_url", json!({"url": url}))).collect()
}

/// Returns the contents of all tool results in the log.
fn results(ground: &Ground) -> Vec<String> {
    let log = ground.world.log().into_iter().filter(|event| event["type"] == "tool_call_finished");
    log.map(|event| event["data"]["content"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_page_is_fetched_in_both_tiers_and_counted() {
    on_a_machine("fetch::a_page_is_fetched_in_both_tiers_and_counted", |ground| {
        let tier = ground.tier;
        ground.take();
        let ended =
            ground.world.run(&model(&fetching(&[PAGE])), &["--mode", "auto", "--net", "a.example:80"]);
        assert_eq!(ended.code, 0, "{tier}: {}\n{}", ended.stdout, ended.stderr);
        let came = ground.take();
        let asked = "said 203.0.113.1:80 GET /page?q=1 HTTP/1.1\r\nhost: a.example\r\nuser-agent: bailiwick/";
        assert!(came.iter().any(|packet| packet.starts_with(asked)), "{tier}: {came:?}");
        let content = results(ground).pop().unwrap();
        assert!(content.starts_with("http://a.example/page?q=1 · status 200"), "{tier}: {content}");
        assert!(content.contains("\n\nGET answered by ::ffff:203.0.113.1"), "{tier}: {content}");
        let audit = Finished::of(ground.world.bailiwick(["audit", "-C"]).arg(ground.world.project()));
        let told = "\n  fetch_url reached a.example:80 · 1 connection · ";
        assert!(audit.code == 0 && audit.stdout.contains(told), "{tier}: {audit:?}");
    });
}

#[test]
fn no_page_leads_to_the_machine_or_its_neighbours() {
    on_a_machine("fetch::no_page_leads_to_the_machine_or_its_neighbours", |ground| {
        let names =
            ["loopback", "loopback6", "any", "own", "private", "near", "metadata", "inside", "mapped"];
        let urls: Vec<_> = names.iter().map(|name| format!("http://{name}.example:7/")).collect();
        let urls: Vec<_> = urls.iter().map(String::as_str).collect();
        let tier = ground.tier;
        ground.take();
        let ended = ground.world.run(&model(&fetching(&urls)), &["--mode", "auto", "--net", "on"]);
        let came = ground.take();
        let leads = |packet: &&String| packet.starts_with("tcp") && packet.ends_with(":7");
        assert_eq!(came.iter().find(leads), None, "{tier}: {came:?}\n{}", ended.stdout);
        let results = results(ground);
        let results = &results[results.len() - names.len()..];
        for (name, result) in names.iter().zip(results) {
            let expected = match *name {
                "inside" => "no address was found for",
                "private" => "to allow: --reach lan",
                "near" => "to allow: --reach link-local",
                "metadata" => "to allow: --reach metadata",
                _ => "to allow: --reach host",
            };
            assert!(result.contains(expected), "{tier} {name}: {result}");
        }
        // Control: with the permission, the connection is made. The server's answer is not HTTP.
        let reach = ["--mode", "auto", "--net", "on", "--reach", "host"];
        ground.take();
        ground.world.run(&model(&fetching(&["http://loopback.example:7/"])), &reach);
        assert!(ground.take().iter().any(|packet| packet.starts_with("tcp 127.0.0.1:7")));
    });
}

#[test]
fn beyond_the_hosts_nothing_is_asked_where_nobody_answers() {
    on_a_machine("fetch::beyond_the_hosts_nothing_is_asked_where_nobody_answers", |ground| {
        for mode in ["auto", "deny", "ask"] {
            let server = model(&fetching(&["http://evil.example/"]));
            ground.outside.take();
            let ended = ground.world.run(&server, &["--mode", mode, "--net", "a.example:80"]);
            assert!(ground.outside.take().is_empty(), "{mode}");
            let content = results(ground).pop().unwrap();
            assert!(
                content.contains("--net a.example:80,evil.example:80"),
                "{mode}: {content}\n{}",
                ended.stderr
            );
        }
        // A sub-agent with network access has the list of allowed hosts of its session, and nobody is asked.
        let task =
            ("fetch".to_owned(), vec![replies::calls(&fetching(&["http://evil.example/"])), replies::done()]);
        let spawn = replies::calls(&[("spawn_agent", json!({"task": "fetch", "network": true}))]);
        let server = model_of_agents([spawn, replies::done()], [task]);
        ground.world.run(&server, &["--mode", "auto", "--net", "a.example:80"]);
        assert!(ground.outside.take().is_empty());
    });
}

#[test]
fn a_host_that_a_person_approved_is_asked_about_once_and_ends_with_the_network() {
    on_a_machine(
        "fetch::a_host_that_a_person_approved_is_asked_about_once_and_ends_with_the_network",
        |ground| {
            let urls = [PAGE, "http://a.example/second", "http://a.example/third"];
            let turns = urls.iter().flat_map(|url| [replies::calls(&fetching(&[url])), replies::done()]);
            let model = replies::model_of(turns);
            let mut served = Served::greeted(&ground.world);
            let id = served.converse(&ground.world.project(), &model.base_url(), "ask");
            let send = |served: &mut Served| {
                served.call("sendUserMessage", json!({"conversation_id": id, "text": "go"}));
            };
            ground.outside.take();
            send(&mut served);
            let asked = served.asked("fetchApproval");
            assert_eq!(
                (&asked["params"]["url"], &asked["params"]["host"]),
                (&json!(PAGE), &json!("a.example:80"))
            );
            assert!(ground.outside.take().is_empty(), "nothing is sent before the answer");
            let decision = json!({"decision": "approved_for_session", "scope": {"type": "host"}, "digest": asked["params"]["digest"]});
            served.line(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": decision}).to_string());
            served.until("event/turnFinished");
            send(&mut served);
            served.until("event/turnFinished");
            let came = ground.outside.take();
            for path in ["/page?q=1", "/second"] {
                assert!(came.iter().any(|packet| packet.contains(&format!("GET {path} "))), "{came:?}");
            }
            served.call("setNet", json!({"conversation_id": id, "net": "off"}));
            served.until("event/grantRevoked");
            send(&mut served);
            let asked = served.asked("fetchApproval");
            assert_eq!(asked["params"]["url"], "http://a.example/third");
            assert!(ground.outside.take().is_empty());
            served.end();
        },
    );
}

#[test]
fn a_fetch_that_was_taken_over_reaches_the_internet_and_nothing_else() {
    on_a_machine("fetch::a_fetch_that_was_taken_over_reaches_the_internet_and_nothing_else", |ground| {
        let secrets = secrets(ground);
        for tier in [TierChoice::Full, TierChoice::Floor] {
            let confinement = || {
                let agent =
                    Confinement { tier, ..Confinement::new(Rights::default(), Path::new("/").into()) };
                let url: ipc::page_url::PageUrl = PAGE.parse().unwrap();
                let (program, hosts) = (PYTHON.into(), url.rules());
                let (reach, log) = (Reach::default(), GuestLog::default());
                FetchSpec { program, agent, reach, url, hosts, log }.guest().confinement
            };
            let hosts = ["127.0.0.1", "::1", "203.0.113.254", "10.7.7.7", "169.254.7.7", "169.254.169.254"];
            let acts = format!("for host in {hosts:?}: tcp(host, 7, b'x')");
            ground.take();
            assert_eq!(
                under(ground, confinement(), &acts).stdout,
                "EACCES\n".repeat(hosts.len()),
                "{tier:?}"
            );
            assert_eq!(ground.take(), Vec::<String>::new(), "{tier:?}");
            assert_eq!(ground.unconfined(&acts).stdout, "b'x'\n".repeat(hosts.len()));
            assert_eq!(
                under(ground, confinement(), "tcp('a.example', 7, b'x')").stdout,
                "b'x'\n",
                "{tier:?}"
            );
            let acts = format!("for path in {secrets:?}: say(lambda: open(path).read())");
            let read = under(ground, confinement(), &acts).stdout;
            let are_denied = read.lines().all(|line| ["EACCES", "ENOENT"].contains(&line));
            assert!(are_denied && read.lines().count() == secrets.len(), "{tier:?}: {read}");
            let acts = "say(lambda: open('/tmp/planted', 'w'))\nsay(lambda: os.execv('/bin/true', ['true']))";
            let acted = under(ground, confinement(), acts).stdout;
            let are_denied = acted.lines().all(|line| ["EACCES", "ENOENT", "EROFS"].contains(&line));
            assert!(are_denied && acted.lines().count() == 2, "{tier:?}: {acted}");
        }
    });
}
