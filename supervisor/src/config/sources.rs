//! Settings as every front end begins with them: both files, the flags, the environment, and whether the project is trusted.

use std::fmt::Write as _;
use std::path::Path;

use super::{
    ConfigError, Effective, FOREIGN_NAME, Layer, Layers, Origin, PROJECT_NAME, ProjectFile, Settled, Trust,
    TrustError, TrustQuestion, UserFile, Value, merge,
};
use crate::directories::Directories;
use crate::provider::ProviderKind;
use crate::shell_word::shell_word;

/// What of a project's file is named in one notice.
const NAMED: usize = 5;

/// Everything that is said outside of the command line.
#[derive(Debug)]
pub(crate) struct Sources {
    user: UserFile,
    /// Absent where there is no such directory, which is found out and told elsewhere.
    project: Option<ProjectFile>,
    trust: Trust,
    trusted: bool,
}

impl Sources {
    /// Reads both files.
    pub(crate) fn read(directories: &Directories, directory: &Path) -> Result<Self, ConfigError> {
        let user = UserFile::read(directories)?;
        let project = std::fs::canonicalize(directory).ok().filter(|project| project.is_dir());
        let project = project.map(|project| ProjectFile::read(&project)).transpose()?;
        let trust = Trust::new(directories);
        let given = |file: &ProjectFile| {
            file.digest.as_ref().is_some_and(|digest| trust.is_given(&file.project, digest))
        };
        let trusted = project.as_ref().is_some_and(given);
        Ok(Self { user, project, trust, trusted })
    }

    /// What holds, with these flags. The address in the user's file is that of the provider there: another vendor's that a
    /// flag names is not asked at it, and does not get its key.
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
        merge(Layers {
            flags,
            environment,
            user,
            project: self.project.as_ref().map_or(&none, |file| &file.layer),
            trusted: self.trusted,
        })
    }

    /// Which files there are, in a line.
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

    /// What a person is to be asked, as long as the project's file is not trusted and would widen something.
    pub(crate) fn question(&self) -> Option<TrustQuestion> {
        let file = self.project.as_ref().filter(|_| !self.trusted)?;
        TrustQuestion::about(file)
    }

    /// Trusts the file that the question was about: this very one, as it was read. Only after a person's answer.
    pub(crate) fn trust(&mut self, question: &TrustQuestion) -> Result<(), TrustError> {
        self.trust.remember(&question.project, &question.digest)?;
        self.trusted =
            self.project.as_ref().is_some_and(|file| file.digest.as_ref() == Some(&question.digest));
        Ok(())
    }

    /// The project's directory, if there is one.
    pub(crate) fn project(&self) -> Option<&Path> {
        self.project.as_ref().map(|file| file.project.as_path())
    }

    /// True if the project's file is trusted, as it is now.
    pub(crate) const fn is_trusted(&self) -> bool {
        self.trusted
    }

    /// Withdraws the trust in the project's file; true if there was any.
    pub(crate) fn forget(&self) -> Result<bool, TrustError> {
        self.project().map_or(Ok(false), |project| self.trust.forget(project))
    }

    /// What a person is to know of what holds, in a session with these flags; one sentence each, with what to do.
    pub(crate) fn notices(&self, effective: &Effective, flags: &Layer) -> Vec<String> {
        let mut notices = Vec::new();
        if self.project.as_ref().is_some_and(|file| file.has_foreign) {
            notices
                .push(format!("{FOREIGN_NAME} is another agent's and is not read; ours is {PROJECT_NAME}"));
        }
        notices.extend(self.void());
        notices.extend(self.ignored(effective));
        let overruled = |settled: &&Settled| {
            matches!(settled.origin, Origin::Project(_))
                && flags.get(settled.key).is_some()
                && settled.value.as_ref().is_some_and(|value| value.elements().is_empty())
        };
        notices.extend(effective.settled.iter().filter(overruled).filter_map(|settled| {
            let flag = &flags.get(settled.key)?.origin;
            let Settled { key, value, origin } = settled;
            let value = value.as_ref()?;
            Some(format!("{flag} does not hold: {origin} says {} = {value}, which is narrower", key.name))
        }));
        notices
    }

    /// The lines of the project's file that count for nothing, trusted or not.
    pub(crate) fn void(&self) -> impl Iterator<Item = String> {
        self.project.iter().flat_map(|file| &file.layer.void).map(ToString::to_string)
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

/// What the environment says to who asks this provider: each has a variable for its address.
fn of_environment(provider: ProviderKind) -> Layer {
    let variable = provider.address_variable();
    let base_url = std::env::var(variable).ok().filter(|url| !url.is_empty());
    Layer::default().with("base_url", base_url.map(Value::Text), Origin::Environment(variable))
}
