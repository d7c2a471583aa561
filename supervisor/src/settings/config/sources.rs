//! The sources of settings for all front ends: the person's and the project's files, the environment, and trust.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use gate::roles::Role;
use model::provider::ProviderKind;
use protocol::own_command::OwnCommand;
use protocol::shell_word::shell_word;

use super::origin::SettingPlace;
use super::own_commands::{self, CommandFile, CommandFiles};
use super::project_roles::{self, RoleFile};
use super::{
    ConfigOrigin, Effective, FOREIGN_NAME, Layer, Layers, McpProposal, PROJECT_NAME, ProjectFile, Resolution,
    RoleEntry, SettingsError, Trust, TrustError, TrustQuestion, UserFile, Value, merge,
};
use crate::process::directories::Directories;

/// Maximum number of a project's settings that one notice names.
const NAMED: usize = 5;

#[derive(Debug)]
pub(crate) struct Sources {
    user: UserFile,
    /// The project's file; `None` if the project is no directory. Other code reports that error.
    project: Option<ProjectFile>,
    trust: Trust,
    trusted: bool,
    /// Roles of the project. The bool is true if the person trusts the role's file.
    roles: Vec<(RoleFile, bool)>,
    commands: Commands,
}

#[derive(Debug, Default)]
struct Commands {
    own: CommandFiles,
    of_project: CommandFiles,
    /// For each of the project's files, in the same order: true if the person trusts it.
    trusted: Vec<bool>,
}

impl Sources {
    pub(crate) fn read(directories: &Directories, directory: &Path) -> Result<Self, SettingsError> {
        let project = std::fs::canonicalize(directory).ok().filter(|project| project.is_dir());
        let user = UserFile::read(directories, project.as_deref())?;
        let project = project.map(|project| ProjectFile::read(&project)).transpose()?;
        let trust = Trust::new(directories);
        let given = |file: &ProjectFile| {
            file.digest.as_ref().is_some_and(|digest| trust.is_given(&file.project, digest))
        };
        let trusted = project.as_ref().is_some_and(given);
        let commands = Commands { own: own_commands::of_user(directories), ..Commands::default() };
        let mut sources = Self { user, project, trust, trusted, roles: Vec::new(), commands };
        sources.roles = sources
            .project()
            .map(project_roles::read)
            .unwrap_or_default()
            .into_iter()
            .map(|file| (file, false))
            .collect();
        sources.commands.of_project = sources.project().map(own_commands::of_project).unwrap_or_default();
        sources.judge_files();
        Ok(sources)
    }

    /// Determines which roles and commands of the project the person trusts.
    fn judge_files(&mut self) {
        let Some(project) = self.project().map(Path::to_owned) else { return };
        for (file, trusted) in &mut self.roles {
            let digest = file.role.as_ref().map(|(_, digest)| digest);
            *trusted = digest.is_ok_and(|digest| self.trust.is_given(&project.join(&file.path), digest));
        }
        let is_given = |file: &CommandFile| {
            let digest = file.command.as_ref().map(|(_, digest)| digest);
            digest.is_ok_and(|digest| self.trust.is_given(&project.join(&file.path), digest))
        };
        self.commands.trusted = self.commands.of_project.files.iter().map(is_given).collect();
    }

    /// Returns the settings in force with these flags. A base URL in the person's file is used only with the provider
    /// that the same file names.
    pub(crate) fn effective(&self, flags: &Layer) -> Effective {
        let none = Layer::default();
        let of_file = self.merged(&none, &none, &self.user.layer).provider();
        let provider = self.merged(flags, &none, &self.user.layer).provider();
        let environment = of_environment(provider);
        if provider.vendor() == of_file.vendor() {
            return self.merged(flags, &environment, &self.user.layer);
        }
        self.merged(flags, &environment, &self.user.layer.without("base_url"))
    }

    fn merged(&self, flags: &Layer, environment: &Layer, user: &Layer) -> Effective {
        let none = Layer::default();
        let mut effective = merge(Layers {
            flags,
            environment,
            user,
            project: self.project.as_ref().map_or(&none, |file| &file.layer),
            trusted: self.trusted,
        });
        effective.instructions.clone_from(&self.user.instructions);
        for (file, _) in self.roles.iter().filter(|(_, trusted)| *trusted) {
            if let Ok((role, _)) = &file.role
                && unfit(role, &effective).is_none()
            {
                let origin = ConfigOrigin::Project(SettingPlace::of(&Arc::from(file.path.as_path()), "", 0));
                effective.roles.push(RoleEntry { role: role.clone(), origin });
            }
        }
        self.add_commands(&mut effective);
        effective
    }

    fn add_commands(&self, effective: &mut Effective) {
        for (file, trusted) in self.command_files() {
            if let Ok((command, _)) = &file.command
                && trusted != Some(false)
                && unfit_command(command, effective).is_none()
            {
                let of_project = trusted.is_some();
                effective.commands.push(OwnCommand { of_project, ..command.clone() });
            }
        }
    }

    /// Returns the files of commands: the person's with `None`, then the project's, each with true if it is trusted.
    fn command_files(&self) -> impl Iterator<Item = (&CommandFile, Option<bool>)> {
        let Commands { own, of_project, trusted } = &self.commands;
        let own = own.files.iter().map(|file| (file, None));
        own.chain(of_project.files.iter().zip(trusted.iter().copied().map(Some)))
    }

    pub(crate) fn summary(&self) -> String {
        let user = self.user.path.display().to_string();
        let user = user.escape_debug();
        let is_there = |layer: &Layer| !layer.is_empty();
        match (is_there(&self.user.layer), self.project.as_ref().is_some_and(|file| file.digest.is_some())) {
            (false, false) => format!("the defaults (the file {user} can change them)"),
            (true, false) => user.to_string(),
            (false, true) => PROJECT_NAME.to_owned(),
            (true, true) => format!("{user}, {PROJECT_NAME}"),
        }
    }

    /// Returns the question about trust in the project's files; `None` if they are trusted or would add no access.
    pub(crate) fn question(&self) -> Option<TrustQuestion> {
        let file = self.project.as_ref()?;
        let settings = Some(file).filter(|_| !self.trusted).and_then(TrustQuestion::about);
        let mut question = settings.unwrap_or_else(|| TrustQuestion::nothing(&file.project));
        for (file, _) in self.roles.iter().filter(|(_, trusted)| !trusted) {
            if let Ok((role, digest)) = &file.role {
                question.lines.extend(described(&file.path, role));
                question.files.push((question.project.join(&file.path), digest.clone()));
            }
        }
        for (file, trusted) in self.command_files() {
            if let (Ok((command, digest)), Some(false)) = (&file.command, trusted) {
                question.lines.extend(described_command(&file.path, command));
                question.files.push((question.project.join(&file.path), digest.clone()));
            }
        }
        Some(question).filter(|question| !question.lines.is_empty())
    }

    /// Records trust in exactly the files of the question, as they were read. Call only after the person has agreed.
    pub(crate) fn trust(&mut self, question: &TrustQuestion) -> Result<(), TrustError> {
        for (place, digest) in &question.files {
            self.trust.remember(place, digest)?;
            let is_settings =
                |file: &ProjectFile| file.project == *place && file.digest.as_ref() == Some(digest);
            self.trusted |= self.project.as_ref().is_some_and(is_settings);
        }
        self.judge_files();
        Ok(())
    }

    pub(crate) fn project(&self) -> Option<&Path> {
        self.project.as_ref().map(|file| file.project.as_path())
    }

    pub(crate) fn is_trusted(&self) -> bool {
        self.trusted
            || self.roles.iter().any(|(_, trusted)| *trusted)
            || self.commands.trusted.contains(&true)
    }

    /// Withdraws the trust in the project's files. Returns true if any of them was trusted.
    pub(crate) fn forget(&self) -> Result<bool, TrustError> {
        self.project().map_or(Ok(false), |project| self.trust.forget(project))
    }

    /// Returns notices about the settings of a session with these flags: one sentence each, with a remedy.
    pub(crate) fn notices(&self, effective: &Effective, flags: &Layer) -> Vec<String> {
        let mut notices = Vec::new();
        if self.project.as_ref().is_some_and(|file| file.has_foreign) {
            notices.push(format!(
                "{FOREIGN_NAME} belongs to another agent and is not read; Bailiwick reads {PROJECT_NAME}"
            ));
        }
        notices.extend(self.void());
        notices.extend(self.ignored(effective));
        notices.extend(self.of_roles(effective));
        notices.extend(self.of_commands(effective));
        notices.extend(self.of_servers());
        let overruled = |settled: &&Resolution| {
            matches!(settled.origin, ConfigOrigin::Project(_))
                && flags.get(settled.key).is_some()
                && settled.value.as_ref().is_some_and(|value| value.elements().is_empty())
        };
        notices.extend(effective.settled.iter().filter(overruled).filter_map(|settled| {
            let flag = &flags.get(settled.key)?.origin;
            let Resolution { key, value, origin } = settled;
            let value = value.as_ref()?;
            Some(format!("{flag} has no effect: {origin} sets {} = {value}, which is stricter", key.name))
        }));
        notices
    }

    /// Returns sentences about the lines of the project's file that are ignored even if it is trusted.
    pub(crate) fn void(&self) -> impl Iterator<Item = String> {
        self.project.iter().flat_map(|file| &file.layer.void).map(ToString::to_string)
    }

    /// Returns sentences about the project's roles that are not used, with the reasons.
    fn of_roles(&self, effective: &Effective) -> Vec<String> {
        let Some(project) = self.project() else { return Vec::new() };
        let why = |(file, trusted): &(RoleFile, bool)| match &file.role {
            Err(why) => Some(why.clone()),
            Ok(_) if !trusted => {
                let hint = format!("\n  hint: bailiwick config trust -C {}", shell_word(project));
                Some(format!("the role is not trusted{hint}"))
            }
            Ok((role, _)) => unfit(role, effective),
        };
        let told = |role: &(RoleFile, bool)| {
            let path = role.0.path.display().to_string();
            why(role).map(|why| format!("{}: ignored: {why}", path.escape_debug()))
        };
        self.roles.iter().filter_map(told).collect()
    }

    /// Returns a sentence about commands that cannot be used, and one about commands that are not trusted.
    fn of_commands(&self, effective: &Effective) -> Vec<String> {
        let place = own_commands::place().display().to_string();
        let Commands { own, of_project, .. } = &self.commands;
        let whole = [(own, "commands"), (of_project, place.as_str())].into_iter();
        let whole = whole.filter_map(|(files, place)| Some((place.to_owned(), files.ignored.clone()?)));
        let mut ignored: Vec<_> = whole.collect();
        let mut untrusted = Vec::new();
        for (file, trusted) in self.command_files() {
            let path = file.path.display().to_string().escape_debug().to_string();
            match &file.command {
                Err(why) => ignored.push((path, why.clone())),
                Ok((command, _)) if trusted == Some(false) => untrusted.push(format!("/{}", command.name)),
                // A command that is in force already is usable.
                Ok((command, _)) => {
                    let of_project = trusted.is_some();
                    let known = OwnCommand { of_project, ..command.clone() };
                    let why = Some(()).filter(|()| !effective.commands.contains(&known));
                    ignored.extend(why.and_then(|()| Some((path, unfit_command(command, effective)?))));
                }
            }
        }
        let more = ignored.len().saturating_sub(NAMED);
        let mut notices: Vec<_> =
            ignored.into_iter().take(NAMED).map(|(path, why)| format!("{path}: ignored: {why}")).collect();
        if more > 0 {
            notices.push(format!("{more} more files of commands are ignored"));
        }
        if let (Some(project), false) = (self.project(), untrusted.is_empty()) {
            let more = untrusted.len().saturating_sub(NAMED);
            untrusted.truncate(NAMED);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            notices.push(format!(
                "the project's commands are not trusted: {}{more}\n  hint: bailiwick config trust -C {}",
                untrusted.join(", "),
                shell_word(project)
            ));
        }
        notices
    }

    /// Returns the MCP servers that the project proposes and the person does not have.
    pub(crate) fn proposals(&self) -> impl Iterator<Item = &Result<McpProposal, String>> {
        let has_it = |name: &str| self.user.layer.mcp.iter().any(|server| server.name == name);
        let is_new = move |proposal: &&Result<McpProposal, String>| {
            proposal.as_ref().map_or(true, |proposal| !has_it(&proposal.server.name))
        };
        self.project.iter().flat_map(|file| &file.servers).filter(is_new)
    }

    fn of_servers(&self) -> Vec<String> {
        let (mut names, mut notices) = (Vec::new(), Vec::new());
        for proposal in self.proposals() {
            match proposal {
                Ok(proposal) => names.push(proposal.server.name.as_str()),
                Err(why) => notices.push(format!("proposed MCP servers are ignored: {why}")),
            }
        }
        if let (Some(first), Some(project)) = (names.first(), self.project()) {
            notices.push(format!(
                "the project proposes MCP servers, but none of them is started: {}\n  hint: bailiwick mcp add --from-project {first} -C {}",
                names.join(", "),
                shell_word(project)
            ));
        }
        notices
    }

    fn ignored(&self, effective: &Effective) -> Option<String> {
        let ignored = &effective.ignored;
        let project = &self.project.as_ref().filter(|_| !ignored.is_empty())?.project;
        let named: Vec<_> = ignored.iter().take(NAMED).map(ToString::to_string).collect();
        let mut text =
            format!("{PROJECT_NAME} is not trusted, so these settings have no effect: {}", named.join(", "));
        if let Some(more) = ignored.len().checked_sub(NAMED).filter(|more| *more > 0) {
            // Writing to a string cannot fail.
            let _ = write!(text, " and {more} more");
        }
        let _ = write!(text, "\n  hint: bailiwick config trust -C {}", shell_word(project));
        Some(text)
    }
}

/// Returns the reason why a trusted role cannot be used: it names an unlisted model, or the person has a role of this
/// name. `None` if it can be used.
fn unfit(role: &Role, effective: &Effective) -> Option<String> {
    let Role { name, model, .. } = role;
    let is_the_users =
        |other: &RoleEntry| other.role.name == *name && matches!(other.origin, ConfigOrigin::User(_));
    if effective.roles.iter().any(is_the_users) {
        return Some(format!("you already have a role {name}"));
    }
    let model = model
        .as_ref()
        .filter(|model| *model != effective.model() && !effective.agent_models().contains(model))?;
    Some(format!("`agents.models` does not list the role's model {model:?}"))
}

/// Returns the reason why a command cannot be used: it names an unlisted model, or the person has a command of this
/// name. `None` if it can be used.
fn unfit_command(command: &OwnCommand, effective: &Effective) -> Option<String> {
    let OwnCommand { name, model, .. } = command;
    if effective.commands.iter().any(|other| other.name == *name) {
        return Some(format!("you already have a command /{name}"));
    }
    let model = model.as_ref().filter(|model| !effective.names_model(model))?;
    Some(format!("the command names the model {model:?}, which the settings do not allow"))
}

/// Describes a command for the question about trust, with the first lines of its text. Each use shows the text again.
fn described_command(path: &Path, command: &OwnCommand) -> Vec<String> {
    const LINES: usize = 20;
    let OwnCommand { name, description, text, reads, model, .. } = command;
    let reads = if *reads { ", only reads" } else { "" };
    let model = model.as_ref().map(|model| format!(", model {model}")).unwrap_or_default();
    let head = format!("the command /{name}{reads}{model}: {description}  ({})", path.display());
    let shown = text.lines().take(LINES).map(|line| format!("  | {line}"));
    let more = text.lines().count().saturating_sub(LINES);
    let more = (more > 0).then(|| format!("  … {more} more lines"));
    std::iter::once(head).chain(shown).chain(more).map(|line| line.escape_debug().to_string()).collect()
}

/// Describes a role with all of its instructions for the question about trust, because a sub-agent follows them.
fn described(path: &Path, role: &Role) -> Vec<String> {
    let Role { name, description, prompt, writes, model, tools, max_steps, max_usd } = role;
    let access = if *writes { "may write" } else { "reads" };
    let model = model.as_ref().map(|model| format!(", model {model}")).unwrap_or_default();
    let tools = tools.as_ref().map(|tools| format!(", tools {}", tools.join(" "))).unwrap_or_default();
    let steps = max_steps.map(|steps| format!(", at most {steps} steps")).unwrap_or_default();
    let usd = max_usd.map(|usd| format!(", at most {usd}")).unwrap_or_default();
    let head = format!(
        "the role {name} of sub-agents ({access}{model}{tools}{steps}{usd}): {description}  ({})",
        path.display()
    );
    let instructions = prompt.lines().map(|line| format!("  | {line}"));
    // Untrusted text cannot control the terminal or imitate another line.
    std::iter::once(head).chain(instructions).map(|line| line.escape_debug().to_string()).collect()
}

/// Returns the settings from environment variables. Each provider has its own variable for the base URL.
fn of_environment(provider: ProviderKind) -> Layer {
    let variable = provider.address_variable();
    let base_url = std::env::var(variable).ok().filter(|url| !url.is_empty());
    Layer::default().with("base_url", base_url.map(Value::Text), ConfigOrigin::Environment(variable))
}
