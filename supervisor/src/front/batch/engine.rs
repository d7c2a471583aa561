//! Containers: the command lines of Docker and Podman. All of Bailiwick goes in, read-only; the key and the network stay out.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::task::hex;
use crate::settings::args::EngineArg;

/// The programs that go into a container.
const PROGRAMS: [&str; 3] = ["bailiwick", "bailiwick-worker", "sandbox-exec"];

/// Their directory there.
const INSIDE: &str = "/bailiwick";

/// The directory with the socket of the relay there.
const RELAY: &str = "/bailiwick-relay";

/// The directory there in which a run leaves what is kept.
pub(super) const OUT: &str = "/bailiwick-out";

/// Bailiwick's own directories there, below [`OUT`].
pub(super) const HOME: &str = "home";

/// The label of every container of a batch.
const LABEL: &str = "bailiwick.batch";

/// An engine, and what is the same for every container of a batch.
#[derive(Clone, Debug)]
pub(super) struct Engine {
    /// Its program.
    pub program: &'static str,
    /// The directory with the static programs.
    programs: PathBuf,
    /// Names this batch among others of the machine.
    batch: String,
    /// The command by which a container opens its results to a person who is not root.
    handover: Option<String>,
}

/// One container.
#[derive(Debug)]
pub(super) struct Container<'a> {
    pub image: &'a str,
    /// The id of the task and the number of its run.
    pub name: String,
    pub project: &'a str,
    /// The directory with the socket of its relay.
    pub relay: PathBuf,
    /// The directory for results.
    pub out: PathBuf,
}

impl Engine {
    /// The engine of a batch with this output directory; none where tasks run in checkouts.
    pub(super) fn new(
        kind: EngineArg,
        programs: &Path,
        root: &Path,
        (uid, gid): (u32, u32),
    ) -> io::Result<Option<Self>> {
        let program = match kind {
            EngineArg::None => return Ok(None),
            EngineArg::Docker => "docker",
            EngineArg::Podman => "podman",
        };
        let programs = programs.canonicalize()?;
        for name in PROGRAMS {
            if !programs.join(name).is_file() {
                let text = format!(
                    "{} has no {name}: containers need the three static programs\n  hint: just static, then --programs target/static",
                    programs.display()
                );
                return Err(io::Error::other(text));
            }
        }
        for path in [&programs, root] {
            // A mount is written as a list with commas.
            if path.as_os_str().as_bytes().iter().any(|byte| b",\"\n".contains(byte)) {
                return Err(io::Error::other(format!("{}: its name has a comma or a quote", path.display())));
            }
        }
        let mut batch = hex(Sha256::new_with_prefix(root.as_os_str().as_bytes()));
        batch.truncate(12);
        // Whoever the image runs as has them: with Docker root or any other user, with Podman the person or a user of theirs.
        let handover = match kind {
            _ if uid == 0 => None,
            EngineArg::Docker => {
                Some(format!("chown -R {uid}:{gid} {OUT} 2>/dev/null || chmod -R a+rwX {OUT}"))
            }
            _ => Some(format!("chmod -R a+rwX {OUT}")),
        };
        Ok(Some(Self { program, programs, batch, handover }))
    }

    /// The name of a container, by which it can be removed.
    pub(super) fn container_name(&self, name: &str) -> String {
        format!("bailiwick-{}-{name}", self.batch)
    }

    /// The address at which Bailiwick in a container asks its model.
    pub(super) fn base_url() -> String {
        format!("unix:{RELAY}/relay.sock")
    }

    /// Runs `exec` with these arguments in a container.
    pub(super) fn run(&self, container: &Container<'_>, exec: Vec<OsString>) -> Vec<OsString> {
        let mut line: Vec<OsString> = vec!["run".into(), "--rm".into(), "--interactive".into()];
        if self.program == "podman" {
            // For a user without a name it would add one whose home is the project.
            line.push("--passwd=false".into());
        }
        let mut flag = |name: &str, value: OsString| line.extend([name.into(), value]);
        flag("--name", self.container_name(&container.name).into());
        flag("--label", format!("{LABEL}={}", self.batch).into());
        flag("--network", "none".into());
        flag("--mount", mount(&self.programs, INSIDE, true));
        flag("--mount", mount(&container.relay, RELAY, true));
        flag("--mount", mount(&container.out, OUT, false));
        flag("--env", format!("BAILIWICK_HOME={OUT}/{HOME}").into());
        flag("--workdir", container.project.into());
        match &self.handover {
            None => {
                flag("--entrypoint", format!("{INSIDE}/bailiwick").into());
                line.push(container.image.into());
            }
            Some(handover) => {
                flag("--entrypoint", "/bin/sh".into());
                line.push(container.image.into());
                let script = format!("\"$@\"; status=$?; {handover}; exit $status");
                line.extend(["-c".into(), script.into(), "sh".into(), format!("{INSIDE}/bailiwick").into()]);
            }
        }
        line.push("exec".into());
        line.extend(exec);
        line
    }

    /// Removes a container, whether there is one or not.
    pub(super) fn remove(&self, name: &str) -> Vec<OsString> {
        ["rm", "--force", "--volumes"]
            .iter()
            .map(Into::into)
            .chain([self.container_name(name).into()])
            .collect()
    }

    /// Lists the container with this name, if there is one.
    pub(super) fn look_for(&self, name: &str) -> Vec<OsString> {
        // Docker takes it as a part of the name, Podman as an expression.
        let name = format!("name=^{}$", self.container_name(name));
        ["ps", "--all", "--quiet", "--filter"].iter().map(Into::into).chain([name.into()]).collect()
    }

    /// Lists the containers of this batch.
    pub(super) fn list(&self) -> Vec<OsString> {
        let label = format!("label={LABEL}={}", self.batch);
        ["ps", "--all", "--quiet", "--filter"].iter().map(Into::into).chain([label.into()]).collect()
    }
}

fn mount(from: &Path, to: &str, is_read_only: bool) -> OsString {
    let mut text = OsString::from("type=bind,source=");
    text.push(from);
    text.push(format!(",target={to}"));
    if is_read_only {
        text.push(",readonly");
    }
    text
}

/// The image of an instance of SWE-bench, by the name that its project publishes it with.
pub(super) fn swe_bench_image(id: &str) -> String {
    // Names of repositories may not have two underscores in a row.
    format!("docker.io/swebench/sweb.eval.x86_64.{}:latest", id.replace("__", "_1776_").to_lowercase())
}

/// True if the text can be the name of an image, and is no option.
pub(super) fn is_image(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-/:@".contains(&byte);
    text.len() <= 255
        && text.bytes().all(plain)
        && text.bytes().next().is_some_and(|first| first.is_ascii_alphanumeric())
}
