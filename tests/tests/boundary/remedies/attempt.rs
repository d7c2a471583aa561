//! Makes the two attempts of a scene: a call that is denied, and the call after the remedy. The model is a program that
//! speaks HTTP on loopback and knows only the text of the results.

use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};

use ipc::confinement::Tier;
use model::replay::{RecordedRequest, ReplayServer, Reply, Script};
use serde_json::Value;
use tests::replies::{calls, done, says, serve_checked};
use tests::{Finished, User};

use crate::remedies::ground::Ground;
use crate::remedies::reader::Said;
use crate::remedies::scenes::{Scene, Who};

/// Action that the model asks of the person in its last message.
type Request = Arc<Mutex<Option<Vec<String>>>>;

/// Plays a scene from its beginning. An `Err` has the reason why the scene failed.
pub(crate) fn play(scene: &Scene, user: User, tier: Tier) -> Result<(), String> {
    let ground = Ground::new(user, tier);
    play_on(&ground, scene, tier)
}

/// Plays a scene in an existing project.
pub(crate) fn play_on(ground: &Ground, scene: &Scene, tier: Tier) -> Result<(), String> {
    let input = (scene.input)(ground);
    let (first, request) = attempt(ground, scene, &input, &[]);
    let at_once = scene.full_has_it && tier == Tier::Full;
    if at_once != (first.failures == 0) {
        return Err(format!("the first attempt: {first:?}"));
    }
    let last = match request {
        Some(asked) => follow(ground, scene, &input, &asked)?,
        None => first,
    };
    let (failed, told) = last.results.last().cloned().unwrap_or_default();
    if failed || !(scene.is_done)(ground, &told) {
        return Err(format!("it was not done: {last:?}"));
    }
    Ok(())
}

/// Carries out the model's request to the person, and makes the second attempt.
fn follow(ground: &Ground, scene: &Scene, input: &Value, asked: &[String]) -> Result<Ended, String> {
    let (second, request) = match (scene.who, asked) {
        (Who::UserCopies, [from]) => {
            let copy = ground.world.project().join("copy");
            fs::copy(from, &copy).map_err(|error| format!("a copy of {from}: {error}"))?;
            ground.world.give(&copy);
            attempt(ground, scene, &instead(input, from, "copy"), &[])
        }
        _ => attempt(ground, scene, input, asked),
    };
    match request {
        None => Ok(second),
        Some(again) => Err(format!("after {asked:?} it takes {again:?}: {second:?}")),
    }
}

#[derive(Clone, Debug, Default)]
struct Ended {
    /// Results of the calls, each with true if the call failed.
    results: Vec<(bool, String)>,
    failures: usize,
}

/// Makes the call, and a second one if the model itself can react to the failure. Also returns what the model asks the
/// person to do; `None` if it asks nothing.
fn attempt(ground: &Ground, scene: &Scene, input: &Value, flags: &[String]) -> (Ended, Option<Vec<String>>) {
    let request = Request::default();
    let ended = Arc::new(Mutex::new(Ended::default()));
    let server = model(scene, input, &request, &ended);
    // The person's flags come last, and override the scene's.
    let mode = scene.flags.iter().copied().filter(|_| flags.first().is_none_or(|flag| flag != "--mode"));
    let mut exec = ground.world.exec(&server, &mode.collect::<Vec<_>>());
    let run = Finished::of(exec.args(flags));
    assert!([0, 4].contains(&run.code), "{}\n{}", run.stdout, run.stderr);
    drop(server);
    let request = request.lock().unwrap().take();
    let ended = ended.lock().unwrap().clone();
    (ended, request)
}

fn model(scene: &Scene, input: &Value, request: &Request, ended: &Arc<Mutex<Ended>>) -> ReplayServer {
    let (tool, who, input) = (scene.tool, scene.who, input.clone());
    let (request, ended) = (Arc::clone(request), Arc::clone(ended));
    let script = Script::new().reply(calls(&[(tool, input.clone())])).reply(done()).reply(done());
    let check = move |number: usize, asked: &RecordedRequest| {
        if number == 1 {
            return None;
        }
        let (failed, told) = result(asked);
        let mut ended = ended.lock().unwrap();
        ended.results.push((failed, told.clone()));
        if !failed && Said::of(&told).flags().is_none() {
            return None;
        }
        ended.failures += 1;
        if ended.failures > 1 {
            return None;
        }
        let next = Next::of(who, &Said::of(&told), &input)?;
        Some(Reply::sse(match next {
            Next::Again(call) => calls(&[(tool, call)]),
            Next::Ask(words) => {
                let text = says(&words.join(" "), "end_turn");
                *request.lock().unwrap() = Some(words);
                text
            }
        }))
    };
    serve_checked(script, Box::new(check))
}

/// Next step of the model after a denial.
enum Next {
    /// Make the call again with these arguments.
    Again(Value),
    /// Ask the person for an action, and end the turn.
    Ask(Vec<String>),
}

impl Next {
    fn of(who: Who, said: &Said, input: &Value) -> Option<Self> {
        match who {
            Who::User => said.flags().map(Self::Ask),
            Who::UserCopies => {
                said.object().filter(|_| said.offers_a_copy()).map(|path| Self::Ask(vec![path.to_owned()]))
            }
            Who::ModelDeclares => said.declared_anew(input).map(Self::Again),
            Who::ModelElsewhere => {
                let (path, place) = (said.object()?, said.writable()?);
                let name = Path::new(path).file_name()?.to_str()?;
                Some(Self::Again(instead(input, path, &format!("{place}/{name}"))))
            }
        }
    }
}

fn instead(input: &Value, path: &str, other: &str) -> Value {
    serde_json::from_str(&input.to_string().replace(path, other)).unwrap()
}

/// Returns true if the model's last call failed, and the text of the result.
fn result(request: &RecordedRequest) -> (bool, String) {
    let body: Value = serde_json::from_slice(&request.body).unwrap();
    let block = &body["messages"].as_array().unwrap().last().unwrap()["content"][0];
    let text = match &block["content"] {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
        other => panic!("{other}"),
    };
    (block["is_error"] == true, text)
}
