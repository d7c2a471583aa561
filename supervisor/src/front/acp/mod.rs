//! `bailiwick acp`: the core for editors that speak the Agent Client Protocol, version 1, on standard input and output.
//!
//! The client's methods for files and terminals are never called: they act outside of the sandbox. Option ids of a
//! permission have the digest of the exact effect. A client may change mode, network and model, but never beyond what
//! the flags of `acp` permit.

mod choices;
mod commands;
mod dialect;
mod draft;
mod edited;
mod errors;
mod listing;
mod options;
mod permission;
mod prompt;
mod reaction;
mod requests;
mod sending;
mod servers;
mod session;
mod shown;
#[cfg(test)]
mod tests;
mod updates;
mod waiting;

use ipc::rights::Reach;
use model::provider::ProviderKind;
use protocol::approval::ApprovalMode;
use protocol::rpc::{BaselineWord, NewConversationParams};

use self::dialect::AcpDialect;
use super::wire::{self, Server, Sessions};
use crate::engine::opening::SessionDirs;
use crate::process::exit::Exit;
use crate::process::messages::complain;
use crate::settings::args::{AcpArgs, BaselineArg, ModelArgs, ReachArg};

/// Name by which messages refer to the flags of this command.
const ORIGIN: &str = "acp";

pub(crate) async fn run(args: AcpArgs, place: SessionDirs) -> Exit {
    let widest = args.up_to.map(ApprovalMode::from);
    let params = of_flags(args);
    if let Some((name, _)) = params.env.iter().find_map(|variable| variable.split_once('=')) {
        complain(&format!(
            "--env {name}: give only the name of the variable, without a value\n  hint: set the value in the environment of bailiwick"
        ));
        return Exit::Usage;
    }
    let state = place.directories.state.clone();
    let opener = Sessions::new(place, ORIGIN);
    let expects =
        "waits for an editor that speaks the Agent Client Protocol; set yours up to start `bailiwick acp`";
    wire::run(Server::of(AcpDialect::new(opener, params, widest, state)), expects).await
}

/// Returns the options of a session from the flags. A client adds only the directory.
fn of_flags(args: AcpArgs) -> NewConversationParams {
    let AcpArgs { mode, up_to: _, net, reach: places, write, socket, hide, env, .. } = args;
    let AcpArgs { allow_degraded, baseline, tier, model: ModelArgs { model, provider, base_url }, .. } = args;
    let mut reach = Reach::default();
    for place in &places {
        match place {
            ReachArg::Host => reach.host = true,
            ReachArg::Lan => reach.lan = true,
            ReachArg::LinkLocal => reach.link_local = true,
            ReachArg::Metadata => reach.metadata = true,
        }
    }
    let baseline = baseline.map(|word| match word {
        BaselineArg::Mine => BaselineWord::Mine,
        BaselineArg::Restore => BaselineWord::Restore,
    });
    NewConversationParams {
        mode: mode.map(ApprovalMode::from),
        net,
        reach: (!places.is_empty()).then_some(reach),
        model,
        provider: provider.map(|provider| ProviderKind::from(provider).as_str().to_owned()),
        base_url,
        write: write.iter().map(Into::into).collect(),
        sockets: socket.iter().map(Into::into).collect(),
        hide: hide.iter().map(Into::into).collect(),
        env,
        tier: Some(tier.into()),
        allow_degraded: Some(allow_degraded),
        baseline,
        ..NewConversationParams::default()
    }
}
