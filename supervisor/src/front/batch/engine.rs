//! Command lines of the container engines Docker and Podman. Bailiwick's programs are mounted read-only. A container
//! gets neither the key nor a network.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::task::hex;
use crate::settings::args::EngineArg;

/// Programs that are mounted into a container.
const PROGRAMS: [&str; 3] = ["bailiwick", "bailiwick-worker", "sandbox-exec"];

/// Directory of the programs inside a container.
const INSIDE: &str = "/bailiwick";

/// Directory inside a container with the socket of the relay.
const RELAY: &str = "/bailiwick-relay";

/// Directory inside a container into which a run writes its results.
pub(super) const OUT: &str = "/bailiwick-out";

/// Name of Bailiwick's home directory below [`OUT`].
pub(super) const HOME: &str = "home";

/// Label of every container of a batch.
const LABEL: &str = "bailiwick.batch";

/// A container engine, with the settings of all containers of a batch.
#[derive(Clone, Debug)]
pub(super) struct Engine {
    pub program: &'static str,
    programs: PathBuf,
    /// Value of the label [`LABEL`], unique on the machine.
    batch: String,
    /// Shell command by which a container gives its files to the user of the batch; `None` if that user is root.
    handover: Option<String>,
}

#[derive(Debug)]
pub(super) struct Container<'a> {
    pub image: &'a str,
    pub name: String,
    pub project: &'a str,
    /// Directory on the host with the socket of the relay.
    pub relay: PathBuf,
    pub out: PathBuf,
}

impl Engine {
    /// Finds the container engine. `None` if the tasks run in checkouts.
    pub(super) fn new(
        kind: EngineArg,
        programs: &Path,
        root: &Path,
        uid: u32,
        gid: u32,
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
                    "{} has no {name}: containers need the three statically linked programs\n  hint: run just static, then use --programs target/static",
                    programs.display()
                );
                return Err(io::Error::other(text));
            }
        }
        for path in [&programs, root] {
            // The mount option is a list with commas.
            if path.as_os_str().as_bytes().iter().any(|byte| b",\"\n".contains(byte)) {
                return Err(io::Error::other(format!(
                    "{}: the path has a comma, a quotation mark or a line break",
                    path.display()
                )));
            }
        }
        let mut batch = hex(Sha256::new_with_prefix(root.as_os_str().as_bytes()));
        batch.truncate(12);
        // The files belong to the image's user: any user with Docker, the person or a subordinate one with Podman.
        let handover = match kind {
            _ if uid == 0 => None,
            EngineArg::Docker => {
                Some(format!("chown -R {uid}:{gid} {OUT} 2>/dev/null || chmod -R a+rwX {OUT}"))
            }
            _ => Some(format!("chmod -R a+rwX {OUT}")),
        };
        Ok(Some(Self { program, programs, batch, handover }))
    }

    pub(super) fn container_name(&self, name: &str) -> String {
        format!("bailiwick-{}-{name}", self.batch)
    }

    /// Returns the address at which Bailiwick inside a container reaches the relay.
    pub(super) fn base_url() -> String {
        format!("unix:{RELAY}/relay.sock")
    }

    /// Returns the arguments with which the engine runs `exec` in a container; `exec` lists those of `exec` itself.
    pub(super) fn run(&self, container: &Container<'_>, exec: Vec<OsString>) -> Vec<OsString> {
        let mut line: Vec<OsString> = vec!["run".into(), "--rm".into(), "--interactive".into()];
        if self.program == "podman" {
            // Podman would give a user without a name an entry in `/etc/passwd` whose home is the project.
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

    /// Returns the arguments that remove a container. The command succeeds even if the container does not exist.
    pub(super) fn remove(&self, name: &str) -> Vec<OsString> {
        ["rm", "--force", "--volumes"]
            .iter()
            .map(Into::into)
            .chain([self.container_name(name).into()])
            .collect()
    }

    /// Returns the engine's arguments that list the container with this name.
    pub(super) fn look_for(&self, name: &str) -> Vec<OsString> {
        // Docker reads the filter as a part of the name, and Podman as a regular expression.
        let name = format!("name=^{}$", self.container_name(name));
        ["ps", "--all", "--quiet", "--filter"].iter().map(Into::into).chain([name.into()]).collect()
    }

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

/// Returns the name of the published image for an instance of SWE-bench.
pub(super) fn swe_bench_image(id: &str) -> String {
    // Image names may not have two underscores in a row.
    format!("docker.io/swebench/sweb.eval.x86_64.{}:latest", id.replace("__", "_1776_").to_lowercase())
}

/// True if the text is an image name that cannot be read as an option.
pub(super) fn is_image(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-/:@".contains(&byte);
    text.len() <= 255
        && text.bytes().all(plain)
        && text.bytes().next().is_some_and(|first| first.is_ascii_alphanumeric())
}
