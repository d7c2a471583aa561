//! Drives `bailiwick acp` by the client side of the Rust SDK of the protocol (`agent-client-protocol` on crates.io).
//! Prints a line for each tested flow. Usage: `sdk MODEL_URL`. The variable `BAILIWICK` names the program. Exits with
//! status 1 if a flow has another result than expected.

use std::error::Error;
use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use std::{env, fs};

use agent_client_protocol::schema::ProtocolVersion;
use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{
    CancelNotification, CloseSessionRequest, ContentBlock, InitializeRequest, LoadSessionRequest,
    NewSessionRequest, PermissionOptionKind, PromptRequest, RequestPermissionOutcome,
    RequestPermissionRequest, RequestPermissionResponse, SelectedPermissionOutcome, SessionId,
    SessionNotification, SessionUpdate, StopReason, TextContent, ToolCallContent,
};
use agent_client_protocol::{
    AcpAgent, AcpAgentConfig, Agent, Client, on_receive_notification, on_receive_request,
};

type Said = Result<String, Box<dyn Error>>;

/// Messages that the client has received.
#[derive(Clone, Default)]
struct Seen {
    updates: Arc<Mutex<Vec<SessionUpdate>>>,
    asked: Arc<Mutex<Vec<RequestPermissionRequest>>>,
}

struct Editor {
    connection: ConnectionTo<Agent>,
    seen: Seen,
}

fn same<T: PartialEq + Debug>(one: T, other: T) -> Result<(), Box<dyn Error>> {
    if one == other { Ok(()) } else { Err(format!("{one:?} is not {other:?}").into()) }
}

fn place() -> Result<PathBuf, Box<dyn Error>> {
    Ok(tempfile::Builder::new().prefix("editor-").tempdir_in("/var/tmp")?.keep())
}

/// Runs `flow` with an editor that answers each permission request with the option of the kind `choose`.
async fn editor(home: &Path, choose: PermissionOptionKind, flow: impl AsyncFnOnce(Editor) -> Said) -> Said {
    let url = env::args().nth(1).ok_or("no address of a model")?;
    let config = AcpAgentConfig::new(env::var("BAILIWICK")?)
        .args(["acp", "--base-url", &url])
        .env("HOME", home.display().to_string())
        .env("ANTHROPIC_API_KEY", "x");
    let seen = Seen::default();
    let (told, asked) = (seen.clone(), seen.clone());
    let mut said: Said = Err("the flow did not run".into());
    let result = &mut said;
    Client
        .v1()
        .name("real-editors")
        .on_receive_notification(
            async move |notification: SessionNotification, _| {
                told.updates.lock().expect("no thread panicked").push(notification.update);
                Ok(())
            },
            on_receive_notification!(),
        )
        .on_receive_request(
            async move |request: RequestPermissionRequest, responder, _| {
                let option = request.options.iter().find(|option| option.kind == choose);
                let outcome = option.map_or(RequestPermissionOutcome::Cancelled, |option| {
                    RequestPermissionOutcome::Selected(SelectedPermissionOutcome::new(
                        option.option_id.clone(),
                    ))
                });
                asked.asked.lock().expect("no thread panicked").push(request);
                responder.respond(RequestPermissionResponse::new(outcome))
            },
            on_receive_request!(),
        )
        .connect_with(AcpAgent::new(config), async move |connection: ConnectionTo<Agent>| {
            let hello =
                connection.send_request(InitializeRequest::new(ProtocolVersion::V1)).block_task().await?;
            let name = hello.agent_info.map(|agent| agent.name);
            *result = match same(
                (hello.protocol_version, name.as_deref()),
                (ProtocolVersion::V1, Some("bailiwick")),
            ) {
                Ok(()) => flow(Editor { connection, seen }).await,
                Err(error) => Err(error),
            };
            Ok(())
        })
        .await?;
    said
}

impl Editor {
    async fn open(&self, project: &Path) -> Result<SessionId, Box<dyn Error>> {
        Ok(self.connection.send_request(NewSessionRequest::new(project)).block_task().await?.session_id)
    }

    async fn turn(&self, session: &SessionId, text: &str) -> Result<StopReason, Box<dyn Error>> {
        Ok(self.connection.send_request(said(session, text)).block_task().await?.stop_reason)
    }

    /// Waits for the beginning of the agent's reply.
    async fn until_reply(&self) -> Result<(), Box<dyn Error>> {
        for _ in 0..600 {
            if !self.text().is_empty() {
                return Ok(());
            }
            smol::Timer::after(Duration::from_millis(50)).await;
        }
        Err("no reply came".into())
    }

    fn text(&self) -> String {
        let updates = self.seen.updates.lock().expect("no thread panicked");
        let texts = updates.iter().filter_map(|update| match update {
            SessionUpdate::AgentMessageChunk(chunk) => words(&chunk.content),
            _ => None,
        });
        texts.collect()
    }

    fn history(&self) -> String {
        let updates = self.seen.updates.lock().expect("no thread panicked");
        let kinds = updates.iter().filter_map(|update| match update {
            SessionUpdate::UserMessageChunk(chunk) => Some(format!("user {}", words(&chunk.content)?)),
            SessionUpdate::AgentMessageChunk(chunk) => Some(format!("agent {}", words(&chunk.content)?)),
            SessionUpdate::ToolCall(_) => Some("call".to_owned()),
            _ => None,
        });
        kinds.collect::<Vec<_>>().join(", ")
    }
}

fn said(session: &SessionId, text: &str) -> PromptRequest {
    PromptRequest::new(session.clone(), vec![ContentBlock::Text(TextContent::new(text))])
}

fn words(content: &ContentBlock) -> Option<String> {
    match content {
        ContentBlock::Text(text) => Some(text.text.clone()),
        _ => None,
    }
}

async fn reply() -> Said {
    editor(&place()?, PermissionOptionKind::RejectOnce, async |editor| {
        let session = editor.open(&place()?).await?;
        same(editor.turn(&session, "#hello").await?, StopReason::EndTurn)?;
        same(editor.text().as_str(), "Hello from the model.")?;
        Ok("the reply came".to_owned())
    })
    .await
}

async fn approved() -> Said {
    editor(&place()?, PermissionOptionKind::AllowOnce, async |editor| {
        let project = place()?;
        let session = editor.open(&project).await?;
        same(editor.turn(&session, "#edit").await?, StopReason::EndTurn)?;
        let asked = editor.seen.asked.lock().expect("no thread panicked").clone();
        let content = asked[0].tool_call.fields.content.iter().flatten();
        let diff = content.into_iter().find_map(|part| match part {
            ToolCallContent::Diff(diff) => Some(diff.new_text.clone()),
            _ => None,
        });
        same(diff, Some(fs::read_to_string(project.join("hello.txt"))?))?;
        Ok("the diff that was shown is the file".to_owned())
    })
    .await
}

async fn denied() -> Said {
    editor(&place()?, PermissionOptionKind::RejectOnce, async |editor| {
        let project = place()?;
        let session = editor.open(&project).await?;
        same(editor.turn(&session, "#edit").await?, StopReason::EndTurn)?;
        same(editor.seen.asked.lock().expect("no thread panicked").len(), 1)?;
        same(project.join("hello.txt").exists(), false)?;
        Ok("no file".to_owned())
    })
    .await
}

async fn cancelled() -> Said {
    editor(&place()?, PermissionOptionKind::RejectOnce, async |editor| {
        let session = editor.open(&place()?).await?;
        let prompt = editor.connection.send_request(said(&session, "#long"));
        editor.until_reply().await?;
        editor.connection.send_notification(CancelNotification::new(session.clone()))?;
        same(prompt.block_task().await?.stop_reason, StopReason::Cancelled)?;
        same(editor.turn(&session, "#hello").await?, StopReason::EndTurn)?;
        Ok("cancelled, and the next turn runs".to_owned())
    })
    .await
}

async fn loaded() -> Said {
    editor(&place()?, PermissionOptionKind::AllowOnce, async |editor| {
        let project = place()?;
        let session = editor.open(&project).await?;
        same(editor.turn(&session, "#edit").await?, StopReason::EndTurn)?;
        editor.connection.send_request(CloseSessionRequest::new(session.clone())).block_task().await?;
        editor.seen.updates.lock().expect("no thread panicked").clear();
        let load = LoadSessionRequest::new(session.clone(), &project);
        editor.connection.send_request(load).block_task().await?;
        // After the conversation, a remark may follow that the session continues.
        same(editor.history().starts_with("user #edit, call, agent Written."), true)?;
        same(editor.turn(&session, "#hello").await?, StopReason::EndTurn)?;
        Ok("the history came before the answer".to_owned())
    })
    .await
}

async fn own_command() -> Said {
    let home = place()?;
    let commands = home.join(".config/bailiwick/commands");
    fs::create_dir_all(&commands)?;
    fs::write(commands.join("greet.md"), "#hello $1")?;
    editor(&home, PermissionOptionKind::RejectOnce, async |editor| {
        let session = editor.open(&place()?).await?;
        same(editor.turn(&session, "/greet Ada").await?, StopReason::EndTurn)?;
        let text = editor.text();
        same(text.contains("#hello Ada") && text.ends_with("Hello from the model."), true)?;
        let updates = editor.seen.updates.lock().expect("no thread panicked").clone();
        let offered = updates.iter().any(|update| match update {
            SessionUpdate::AvailableCommandsUpdate(update) => {
                update.available_commands.iter().any(|command| command.name == "greet")
            }
            _ => false,
        });
        same(offered, true)?;
        Ok("offered, and its text was shown as it was sent".to_owned())
    })
    .await
}

fn main() -> ExitCode {
    let version = env::args().nth(2).unwrap_or_default();
    println!("| flow | `agent-client-protocol` {version} of crates.io |\n| --- | --- |");
    let flows: [(&str, fn() -> Said); 6] = [
        ("initialize, new, prompt", || smol::block_on(reply())),
        ("an edit approved", || smol::block_on(approved())),
        ("an edit denied", || smol::block_on(denied())),
        ("cancel in mid-stream", || smol::block_on(cancelled())),
        ("load with history", || smol::block_on(loaded())),
        ("a command of the user's own", || smol::block_on(own_command())),
    ];
    let mut code = ExitCode::SUCCESS;
    for (name, flow) in flows {
        match flow() {
            Ok(said) => println!("| {name} | {said} |"),
            Err(error) => {
                println!("| {name} | **failed**: {error} |");
                code = ExitCode::FAILURE;
            }
        }
    }
    code
}
