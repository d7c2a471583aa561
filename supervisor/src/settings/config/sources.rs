//! The sources of settings for all front ends: both files, the environment, and the trust in the project.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use gate::roles::Role;
use model::provider::ProviderKind;
use protocol::shell_word::shell_word;

use super::origin::SettingPlace;
use super::project_roles::{self, RoleFile};
use super::{
    ConfigOrigin, Effective, FOREIGN_NAME, Layer, Layers, McpProposal, PROJECT_NAME, ProjectFile, Resolution,
    RoleEntry, SettingsError, Trust, TrustError, TrustQuestion, UserFile, Value, merge,
};
use crate::process::directories::Directories;

/// The most settings of a project's file that one notice names.
const NAMED: usize = 5;

/// All settings outside of the command line.
#[derive(Debug)]
pub(crate) struct Sources {
    user: UserFile,
    /// The project's file, or nothing without a project directory. Other code reports that.
    project: Option<ProjectFile>,
    trust: Trust,
    trusted: bool,
    /// The roles of the project. The flag is true if a role's file is trusted.
    roles: Vec<(RoleFile, bool)>,
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
        let mut sources = Self { user, project, trust, trusted, roles: Vec::new() };
        sources.roles = sources
            .project()
            .map(project_roles::read)
            .unwrap_or_default()
            .into_iter()
            .map(|file| (file, false))
            .collect();
        sources.judge_roles();
        Ok(sources)
    }

    /// Determines which roles of the project are trusted.
    fn judge_roles(&mut self) {
        let Some(project) = self.project().map(Path::to_owned) else { return };
        for (file, trusted) in &mut self.roles {
            let digest = file.role.as_ref().map(|(_, digest)| digest);
            *trusted = digest.is_ok_and(|digest| self.trust.is_given(&project.join(&file.path), digest));
        }
    }

    /// Returns the settings in force with these flags. The base URL in the person's file belongs to the provider in
    /// that file. If a flag chooses another provider, that URL is not used and never gets the other provider's key.
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
        effective
    }

    /// Returns a line with the existing files.
    pub(crate) fn summary(&self) -> String {
        let user = self.user.path.display().to_string();
        let user = user.escape_debug();
        let is_there = |layer: &Layer| !layer.is_empty();
        match (is_there(&self.user.layer), self.project.as_ref().is_some_and(|file| file.digest.is_some())) {
            (false, false) => format!("the defaults ({user} would change them)"),
            (true, false) => user.to_string(),
            (false, true) => PROJECT_NAME.to_owned(),
            (true, true) => format!("{user}, {PROJECT_NAME}"),
        }
    }

    /// Returns the question about trust, or nothing if the project's file is trusted or would add no rights.
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
        Some(question).filter(|question| !question.lines.is_empty())
    }

    /// Trusts exactly the files of the question, as they were read. Call only after a person's answer.
    pub(crate) fn trust(&mut self, question: &TrustQuestion) -> Result<(), TrustError> {
        for (place, digest) in &question.files {
            self.trust.remember(place, digest)?;
            let is_settings =
                |file: &ProjectFile| file.project == *place && file.digest.as_ref() == Some(digest);
            self.trusted |= self.project.as_ref().is_some_and(is_settings);
        }
        self.judge_roles();
        Ok(())
    }

    pub(crate) fn project(&self) -> Option<&Path> {
        self.project.as_ref().map(|file| file.project.as_path())
    }

    /// True if the current file of the project is trusted.
    pub(crate) fn is_trusted(&self) -> bool {
        self.trusted || self.roles.iter().any(|(_, trusted)| *trusted)
    }

    /// Withdraws the trust in the project's files. Returns true if there was any.
    pub(crate) fn forget(&self) -> Result<bool, TrustError> {
        self.project().map_or(Ok(false), |project| self.trust.forget(project))
    }

    /// Returns the notices about the effective settings of a session with these flags; one sentence each,
    /// with a remedy.
    pub(crate) fn notices(&self, effective: &Effective, flags: &Layer) -> Vec<String> {
        let mut notices = Vec::new();
        if self.project.as_ref().is_some_and(|file| file.has_foreign) {
            notices
                .push(format!("{FOREIGN_NAME} is another agent's and is not read; ours is {PROJECT_NAME}"));
        }
        notices.extend(self.void());
        notices.extend(self.ignored(effective));
        notices.extend(self.of_roles(effective));
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
            Some(format!("{flag} does not hold: {origin} says {} = {value}, which is narrower", key.name))
        }));
        notices
    }

    /// Returns the lines of the project's file that are ignored, trusted or not.
    pub(crate) fn void(&self) -> impl Iterator<Item = String> {
        self.project.iter().flat_map(|file| &file.layer.void).map(ToString::to_string)
    }

    /// Returns the project's roles that are not used, with the reasons.
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

    /// Returns the servers of MCP that the project proposes and the person has not accepted.
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
                Err(why) => notices.push(format!("proposed servers of MCP are ignored: {why}")),
            }
        }
        if let (Some(first), Some(project)) = (names.first(), self.project()) {
            notices.push(format!(
                "the project proposes servers of MCP, and none is started: {}\n  hint: bailiwick mcp add --from-project {first} -C {}",
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
        let mut text = format!("{PROJECT_NAME} is not trusted; not enabled: {}", named.join(", "));
        if let Some(more) = ignored.len().checked_sub(NAMED).filter(|more| *more > 0) {
            // Writing to a string cannot fail.
            let _ = write!(text, " and {more} more");
        }
        let _ = write!(text, "\n  hint: bailiwick config trust -C {}", shell_word(project));
        Some(text)
    }
}

/// Returns the reason why a trusted role cannot be used, or nothing. A project's role may not choose a model that the
/// person did not list, or replace a role of the person.
fn unfit(role: &Role, effective: &Effective) -> Option<String> {
    let Role { name, model, .. } = role;
    let is_the_users =
        |other: &RoleEntry| other.role.name == *name && matches!(other.origin, ConfigOrigin::User(_));
    if effective.roles.iter().any(is_the_users) {
        return Some(format!("the user has a role {name}"));
    }
    let model = model
        .as_ref()
        .filter(|model| *model != effective.model() && !effective.agent_models().contains(model))?;
    Some(format!("`agents.models` does not list its model {model:?}"))
}

/// Describes a role completely in the question about trust, because a sub-agent follows its instructions.
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

/// Returns the settings from the environment for this provider. Each provider has a variable for its base URL.
fn of_environment(provider: ProviderKind) -> Layer {
    let variable = provider.address_variable();
    let base_url = std::env::var(variable).ok().filter(|url| !url.is_empty());
    Layer::default().with("base_url", base_url.map(Value::Text), ConfigOrigin::Environment(variable))
}
