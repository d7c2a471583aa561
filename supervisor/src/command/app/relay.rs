//! `bailiwick relay`: runs a relay until a signal arrives or the calling process has ended.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::time::Duration;

use model::relay::{
    Account, ClientSettings, Limits, Listen, Relay, RelayError, SOCKET_NAME, Settings, SocketSettings,
};
use model::secrets::TakenKeys;
use nix::unistd::{Pid, geteuid, getppid};
use secrecy::SecretString;
use tokio::runtime::Runtime;
use zeroize::Zeroizing;

use crate::engine::opening::{Refusal, RelayWanted, relay_settings};
use crate::process::directories::Directories;
use crate::process::exit::Exit;
use crate::process::messages::{complain, say, tell};
use crate::process::signals::Endings;
use crate::settings::args::{RelayArgs, RelayPlace};

/// Time between two checks of the calling process.
const LOOK: Duration = Duration::from_secs(1);

const SHORTEST_TOKEN: usize = 16;

pub(super) fn run(args: RelayArgs, keys: &TakenKeys, runtime: &Runtime) -> Exit {
    // The caller is noted before anything else, so that its end is always noticed.
    let caller = getppid();
    let done = Directories::of_process()
        .map_err(Refusal::usage)
        .and_then(|directories| runtime.block_on(serve(args, keys, &directories, caller)));
    done.unwrap_or_else(|Refusal(exit, message)| {
        complain(&message);
        exit
    })
}

impl From<RelayError> for Refusal {
    fn from(error: RelayError) -> Self {
        match error {
            RelayError::Log { .. } => Self::internal(error),
            RelayError::Upstream(_) | RelayError::Behind(_) | RelayError::Place(_) | RelayError::Known(_) => {
                Self::usage(error)
            }
        }
    }
}

async fn serve(
    args: RelayArgs,
    keys: &TakenKeys,
    directories: &Directories,
    caller: Pid,
) -> Result<Exit, Refusal> {
    directories.make().map_err(Refusal::usage)?;
    let mut endings = Endings::new().map_err(Refusal::internal)?;
    let limits = Limits { max_usd: args.max_usd, max_tokens: args.max_tokens };
    let clients = clients(&args, limits)?;
    let mut relay = Relay::start(settings(&args, keys, directories)?)?;
    tell(&relay.notices());
    if limits == Limits::default() {
        say("note: nothing limits what the clients spend (--max-usd, --max-tokens)");
    }
    for settings in clients {
        let name = settings.name.clone();
        let base_url = match relay.add(settings) {
            Ok(base_url) => base_url,
            Err(error) => {
                relay.withdraw_log();
                return Err(error.into());
            }
        };
        // Clients can connect once this line is printed.
        let mut out = io::stdout().lock();
        writeln!(out, "{name} {base_url}").and_then(|()| out.flush()).map_err(Refusal::internal)?;
    }
    say(&format!("the log is {}", relay.log_path().display()));
    let exit = tokio::select! {
        signal = endings.next() => Exit::by_signal(signal),
        () = outlived(caller) => Exit::Done,
    };
    let names: Vec<_> = relay.clients().map(|(name, _)| name.clone()).collect();
    for name in names {
        if let Some(account) = relay.remove(&name).await {
            say(&format!("{name}: {}", summary(&account)));
        }
    }
    Ok(exit)
}

/// Waits until the calling process has ended.
async fn outlived(caller: Pid) {
    while getppid() == caller {
        tokio::time::sleep(LOOK).await;
    }
}

fn summary(account: &Account) -> String {
    let Account { requests, refused, tokens, cost, estimated } = account;
    let plural = if *requests == 1 { "" } else { "s" };
    format!(
        "{requests} request{plural}, {refused} refused, {tokens} tokens, {cost}, of that {estimated} estimated"
    )
}

fn settings(args: &RelayArgs, keys: &TakenKeys, directories: &Directories) -> Result<Settings, Refusal> {
    relay_settings(
        RelayWanted {
            providers: args.providers.iter().map(|provider| (*provider).into()).collect(),
            base_url: args.base_url.clone(),
            models: args.models.clone(),
            max_reply: args.max_reply_tokens,
        },
        keys,
        directories,
    )
}

fn clients(args: &RelayArgs, limits: Limits) -> Result<Vec<ClientSettings>, Refusal> {
    let mut clients = Vec::new();
    match &args.listen {
        RelayPlace::Directory(directory) => {
            if args.token_file.is_some() {
                return Err(Refusal::usage("--token-file: clients at a socket need no token"));
            }
            for name in &args.clients {
                let path = directory.join(name.as_str()).join(SOCKET_NAME);
                let socket = SocketSettings { path, mode: args.socket_mode, owner: args.socket_owner };
                clients.push(ClientSettings { name: name.clone(), listen: Listen::Socket(socket), limits });
            }
        }
        RelayPlace::Loopback(address) => {
            let [name] = &args.clients[..] else {
                let message = "--client: a relay at an address can have only one client\n  hint: run a relay for each, or --listen unix:DIR";
                return Err(Refusal::usage(message));
            };
            let Some(file) = &args.token_file else {
                let message = "--listen: every user of this machine can reach this address, so the client needs a token\n  hint: --token-file FILE";
                return Err(Refusal::usage(message));
            };
            let token = token(file)
                .map_err(|error| Refusal::usage(format!("--token-file {}: {error}", file.display())))?;
            let listen = Listen::Loopback { address: *address, token };
            clients.push(ClientSettings { name: name.clone(), listen, limits });
        }
    }
    Ok(clients)
}

/// Returns the token from a file. If the file is missing, creates it with a new token.
fn token(file: &Path) -> io::Result<SecretString> {
    match File::options().write(true).create_new(true).mode(0o600).open(file) {
        Ok(mut made) => {
            // Two UUIDs contain 244 random bits from the kernel.
            let [first, second] = [uuid::Uuid::new_v4(), uuid::Uuid::new_v4()];
            let token = Zeroizing::new(format!("{}{}", first.simple(), second.simple()));
            writeln!(made, "{}", *token)?;
            Ok(SecretString::from(token.to_string()))
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => read_token(file),
        Err(error) => Err(error),
    }
}

fn read_token(file: &Path) -> io::Result<SecretString> {
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let mut opened = File::options().read(true).custom_flags(flags).open(file)?;
    let meta = opened.metadata()?;
    if meta.permissions().mode() & 0o077 != 0 || meta.uid() != geteuid().as_raw() {
        return Err(io::Error::other(
            "other users could read this file\n  hint: make yourself the owner, and set mode 0600",
        ));
    }
    let mut text = Zeroizing::new(String::new());
    (&mut opened).take(4096).read_to_string(&mut text)?;
    let token = text.trim();
    if token.len() < SHORTEST_TOKEN || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        let message = format!("expected a token of {SHORTEST_TOKEN} characters or more, on one line");
        return Err(io::Error::other(message));
    }
    Ok(SecretString::from(token.to_owned()))
}
