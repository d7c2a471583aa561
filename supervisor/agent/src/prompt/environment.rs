//! What varies from run to run, as text for the first user message.

use std::fmt::Write;

use ipc::rights::Network;

use gate::StandingRights;
use gate::activity::Activity;
use gate::modes::{Position, permits};

/// What varies from run to run, besides the rights.
#[derive(Clone, Debug)]
pub struct PromptEnvironment {
    /// The platform: `Linux 6.18 x86_64`.
    pub platform: String,
    /// The day: `2026-11-21`.
    pub date: String,
    /// What the agent is there for.
    pub activity: Activity,
    /// The user's own instructions, which hold in every project.
    pub instructions: Option<String>,
}

/// The context that an agent begins with: where it is, and what it may do there, as its worker sees both.
pub fn environment_context(surroundings: &PromptEnvironment, standing: &StandingRights) -> String {
    let PromptEnvironment { platform, date, activity, .. } = surroundings;
    let activity = activity.as_str();
    let project = &standing.project;
    let mut text = String::from("<environment>\n");
    // A String takes every write.
    let _ = writeln!(text, "project: {project} (relative paths begin here)");
    if let Some(temp) = &standing.temp {
        let _ = writeln!(text, "TMPDIR: {temp}");
    }
    let _ = writeln!(text, "platform: {platform}\ndate: {date}\nactivity: {activity}");
    mode(&mut text, standing);
    rights(&mut text, standing);
    text.push_str("</environment>");
    text
}

/// Message to an agent when the approval mode has changed, and its rights with it.
pub fn mode_context(standing: &StandingRights) -> String {
    let mut text = String::from("<rights>\nThe user changed the approval mode. From now on:\n");
    mode(&mut text, standing);
    rights(&mut text, standing);
    text.push_str("</rights>");
    text
}

/// The words for an agent that is back at an earlier place of its conversation, where its rights were perhaps others.
pub fn rewound_context(standing: &StandingRights) -> String {
    let mut text = String::from("<rights>\nFrom here on:\n");
    mode(&mut text, standing);
    rights(&mut text, standing);
    text.push_str("</rights>");
    text
}

fn mode(text: &mut String, standing: &StandingRights) {
    let means = if permits(Position::FIRST, standing.mode).asks() {
        "write_file and edit_file beyond your rights are shown to the user, who decides; a command asks where it says \
             access \"write\" or network true, and is otherwise held to your rights"
    } else {
        "a call beyond your rights is denied; nobody is asked"
    };
    let _ = writeln!(text, "approval mode: {} ({means})", standing.mode);
}

/// Message to an agent when its rights have changed.
pub fn rights_context(standing: &StandingRights) -> String {
    let mut text = String::from(
        "<rights>\nThe user changed your rights. What ran was ended for it; from now on they are:\n",
    );
    rights(&mut text, standing);
    text.push_str("</rights>");
    text
}

/// Message to a sub-agent when the rights of an agent above it became less.
pub fn narrowed_context(standing: &StandingRights) -> String {
    let mut text = String::from(
        "<rights>\nThe user took rights from your parent, and so from you. What ran was ended for it; from now on they are:\n",
    );
    rights(&mut text, standing);
    text.push_str("</rights>");
    text
}

fn rights(text: &mut String, standing: &StandingRights) {
    let net = match &standing.rights.net {
        Network::Off => {
            "off: nothing outside the sandbox can be reached, and packages cannot be downloaded".to_owned()
        }
        Network::On => "on".to_owned(),
        Network::Hosts(hosts) => format!(
            "on for these hosts alone, by name: {hosts} (port 443 unless another is named); connections to others are refused"
        ),
    };
    let _ = writeln!(text, "network: {net}\nyour rights: {}", standing.line());
}

#[cfg(test)]
mod tests {
    use ipc::rights::Rights;

    use super::*;
    use gate::ApprovalMode;

    #[test]
    fn context_says_what_varies() {
        let standing = StandingRights::new(
            Rights {
                read: vec!["/".into()],
                hidden: vec!["/home/me/.ssh".into()],
                write: vec!["/home/me/p".into(), "/tmp/bw-1".into()],
                ..Rights::default()
            },
            "/home/me/p".into(),
            Some("/tmp/bw-1".into()),
            ApprovalMode::Auto,
        );
        let surroundings = PromptEnvironment {
            platform: "Linux 6.18 x86_64".to_owned(),
            date: "2026-11-21".to_owned(),
            activity: Activity::Execute,
            instructions: None,
        };
        insta::assert_snapshot!(environment_context(&surroundings, &standing), @r"
        <environment>
        project: /home/me/p (relative paths begin here)
        TMPDIR: /tmp/bw-1
        platform: Linux 6.18 x86_64
        date: 2026-11-21
        activity: execute
        approval mode: auto (a call beyond your rights is denied; nobody is asked)
        network: off: nothing outside the sandbox can be reached, and packages cannot be downloaded
        your rights: writes in the project, $TMPDIR · network off · secrets hidden
        </environment>
        ");
    }
}
