//! What varies from run to run, as text for the first user message.

use std::fmt::Write;

use crate::gate::Standing;

/// What varies from run to run.
#[derive(Clone, Debug)]
pub struct Environment<'a> {
    /// What the agent may do, and where.
    pub standing: &'a Standing,
    /// The platform: `Linux 6.18 x86_64`.
    pub platform: &'a str,
    /// The day: `2026-11-21`.
    pub date: &'a str,
    /// `plan` or `execute`.
    pub activity: &'a str,
}

/// The context that an agent begins with.
pub fn environment_context(environment: &Environment<'_>) -> String {
    let Environment { standing, platform, date, activity } = environment;
    let project = &standing.project;
    let net = match standing.rights.net {
        ipc::rights::Network::Off => {
            "off: nothing outside the sandbox can be reached, and packages cannot be downloaded"
        }
        ipc::rights::Network::On => "on",
    };
    let mut text = String::from("<environment>\n");
    // A String takes every write.
    let _ = writeln!(text, "project: {project} (relative paths begin here)");
    if let Some(temp) = &standing.temp {
        let _ = writeln!(text, "TMPDIR: {temp}");
    }
    let _ = writeln!(text, "platform: {platform}\ndate: {date}\nactivity: {activity}");
    let _ = writeln!(
        text,
        "approval mode: {} (a call beyond your rights is denied; nobody is asked)",
        standing.mode
    );
    let _ = writeln!(text, "network: {net}\nyour rights: {}", standing.line());
    text.push_str("</environment>");
    text
}

#[cfg(test)]
mod tests {
    use ipc::rights::{Execution, Limits, Network, Rights};

    use super::*;
    use crate::gate::ApprovalMode;

    #[test]
    fn context_says_what_varies() {
        let standing = Standing {
            rights: Rights {
                read: vec!["/".into()],
                hidden: vec!["/home/me/.ssh".into()],
                write: vec!["/home/me/p".into(), "/tmp/bw-1".into()],
                protected: vec![],
                net: Network::Off,
                reach: ipc::rights::Reach::default(),
                exec: Execution::Allowed,
                limits: Limits::default(),
            },
            project: "/home/me/p".into(),
            temp: Some("/tmp/bw-1".into()),
            mode: ApprovalMode::Auto,
        };
        let environment = Environment {
            standing: &standing,
            platform: "Linux 6.18 x86_64",
            date: "2026-11-21",
            activity: "execute",
        };
        insta::assert_snapshot!(environment_context(&environment), @r"
        <environment>
        project: /home/me/p (relative paths begin here)
        TMPDIR: /tmp/bw-1
        platform: Linux 6.18 x86_64
        date: 2026-11-21
        activity: execute
        approval mode: auto (a call beyond your rights is denied; nobody is asked)
        network: off: nothing outside the sandbox can be reached, and packages cannot be downloaded
        your rights: rw . $TMPDIR · ro / minus hidden · net off
        </environment>
        ");
    }
}
