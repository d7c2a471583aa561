//! Text of the first user message about facts that differ between runs.

use std::fmt::Write;

use ipc::rights::Network;

use gate::StandingRights;
use gate::activity::Activity;
use gate::modes::{Position, permits};

#[derive(Clone, Debug)]
pub struct PromptEnvironment {
    /// Operating system, kernel version and architecture: `Linux 6.18 x86_64`.
    pub platform: String,
    pub date: String,
    pub activity: Activity,
    /// The user's own instructions for all projects; `None` if there are none.
    pub instructions: Option<String>,
}

/// Returns the text about the agent's surroundings and access, with paths as its worker sees them.
pub fn environment_context(surroundings: &PromptEnvironment, standing: &StandingRights) -> String {
    let PromptEnvironment { platform, date, activity, .. } = surroundings;
    let activity = activity.as_str();
    let project = standing.project();
    let mut text = String::from("<environment>\n");
    // Writing to a `String` cannot fail.
    let _ = writeln!(text, "project: {project} (relative paths begin here)");
    if let Some(temp) = &standing.temp() {
        let _ = writeln!(text, "TMPDIR: {temp}");
    }
    let _ = writeln!(text, "platform: {platform}\ndate: {date}\nactivity: {activity}");
    mode(&mut text, standing);
    rights(&mut text, standing);
    text.push_str("</environment>");
    text
}

pub fn mode_context(standing: &StandingRights) -> String {
    let mut text = String::from("<rights>\nThe user changed the approval mode. From now on:\n");
    mode(&mut text, standing);
    rights(&mut text, standing);
    text.push_str("</rights>");
    text
}

/// Returns the text about the current access, because the conversation that the rewind restored may describe another.
pub fn rewound_context(standing: &StandingRights) -> String {
    let mut text = String::from("<rights>\nFrom here on:\n");
    mode(&mut text, standing);
    rights(&mut text, standing);
    text.push_str("</rights>");
    text
}

fn mode(text: &mut String, standing: &StandingRights) {
    let means = if permits(Position::FIRST, standing.mode()).asks() {
        "write_file and edit_file beyond your rights are shown to the user, who decides; a command asks where it says \
             access \"write\" or network true, and is otherwise held to your rights"
    } else {
        "a call beyond your rights is denied; nobody is asked"
    };
    let _ = writeln!(text, "approval mode: {} ({means})", standing.mode());
}

pub fn rights_context(standing: &StandingRights) -> String {
    let mut text = String::from(
        "<rights>\nThe user changed your rights. What ran was ended for it; from now on they are:\n",
    );
    rights(&mut text, standing);
    text.push_str("</rights>");
    text
}

/// Returns the text for a sub-agent after a reduction of its parent's access.
pub fn narrowed_context(standing: &StandingRights) -> String {
    let mut text = String::from(
        "<rights>\nThe user took rights from your parent, and so from you. What ran was ended for it; from now on they are:\n",
    );
    rights(&mut text, standing);
    text.push_str("</rights>");
    text
}

fn rights(text: &mut String, standing: &StandingRights) {
    let net = match &standing.rights().net {
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
