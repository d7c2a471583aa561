//! Hints for failures that programs report without naming a denied path or host.

use ipc::confinement::Tier;
use ipc::refusal::{Refusal, Target};
use ipc::tool::{CommandExit, CommandResult};

use super::unreached::unreached;
use crate::judgement::standing::is_git_config;
use crate::judgement::{StandingRights, flags};

/// Returns a hint if a write to a protected git configuration was denied. Git continues then, and often exits with 0.
pub fn git_config_hint(standing: &StandingRights, result: &CommandResult) -> Option<String> {
    let is_refusal = |line: &str| {
        let line = line.to_ascii_lowercase();
        line.contains("config")
            && ["could not write", "could not lock", "could not set", "unable to write"]
                .iter()
                .any(|words| line.contains(words))
            && ["read-only file system", "device or resource busy", "permission denied"]
                .iter()
                .any(|words| line.contains(words))
    };
    let text = [&result.head, &result.tail];
    let refused = text.into_iter().flat_map(|text| text.lines()).find(|line| is_refusal(line))?;
    let configs = || standing.rights.protected.iter().filter(|path| is_git_config(path));
    let named = configs().find(|config| refused.contains(&config.to_string()));
    let grant = flags::for_git_config(standing, named.or_else(|| configs().next())?);
    Some(format!(
        "(Git could not write its configuration: writing it has to be allowed separately, {grant}. Whatever git printed, the configuration is unchanged.)"
    ))
}

/// Returns a hint if a connection to localhost was refused, in a sandbox with its own loopback interface. To the
/// command, a server on the host then seems not to run.
pub fn connection_hint(standing: &StandingRights, result: &CommandResult) -> Option<&'static str> {
    let is_refusal = |line: &str| {
        let lower = line.to_ascii_lowercase();
        ["connection refused", "econnrefused", "couldn't connect to server", "could not connect to server"]
            .iter()
            .any(|words| lower.contains(words))
            && unreached(line).is_none()
    };
    let refused = result.exit != CommandExit::Code(0)
        && [&result.head, &result.tail].iter().flat_map(|text| text.lines()).any(is_refusal);
    let own = standing.tier != Tier::FloorUnmediated && standing.rights.net.is_off();
    // A program that could not reach a unix socket may name a host.
    let is_socket = |refusal: &Refusal| matches!(refusal.object, Target::Socket(_) | Target::Abstract(_));
    (own && refused && !result.refused.iter().any(is_socket)).then_some(
        "(With the network off, 127.0.0.1 and ::1 are the sandbox's own: only servers that were started within the same \
         command can be reached there, and none of the machine's. The user can open those with --net on --reach host.)",
    )
}
