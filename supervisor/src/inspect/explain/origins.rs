//! The origins of rules: a default, a line of a settings file, or a flag.

use boundary::policy::{allowed_socket, configured_write_root, leads_to, write_root};
use gate::StandingRights;
use ipc::path::WirePath;

use crate::engine::place::{ConfinementOptions, NamedPath, ProjectSandbox};
use crate::settings::config::{ConfigOrigin, Effective};

pub(super) struct Origins<'a> {
    pub(super) setup: &'a ProjectSandbox,
    pub(super) wanted: &'a ConfinementOptions,
    pub(super) effective: &'a Effective,
}

pub(super) type OriginRule = (String, Option<String>);

impl Origins<'_> {
    /// Returns the origin of the permission to write in this directory.
    pub(super) fn of_write_root(&self, root: &WirePath, standing: &StandingRights) -> OriginRule {
        if Some(root) == standing.temp() {
            return ("the private temp directory is always writable".to_owned(), default());
        }
        if Some(root) == standing.caches() {
            let because = "the private caches of commands with this access are always writable";
            return (because.to_owned(), default());
        }
        if let Some(named) = self.wanted.write.iter().find(|named| self.is_root(named, root)) {
            return (format!("the path is in the writable directory {root}"), Some(named.origin.to_string()));
        }
        let what = if root == standing.project() {
            "the project is writable in mode auto"
        } else {
            "the path is in the project's git directory, which is writable in mode auto"
        };
        (what.to_owned(), Some(self.of_key("mode")))
    }

    fn is_root(&self, named: &NamedPath, root: &WirePath) -> bool {
        let project = self.setup.policy.project.as_path();
        let found = match named.origin {
            ConfigOrigin::Flag(_) => write_root(project, &named.path).ok(),
            _ => configured_write_root(project, &named.path).ok(),
        };
        found.is_some_and(|found| found == *root)
    }

    /// Returns the origin of the permission to reach a socket; `None` without permission.
    pub(super) fn of_socket(&self, socket: &WirePath) -> Option<String> {
        let project = self.setup.policy.project.as_path();
        let is_it =
            |named: &&NamedPath| allowed_socket(project, &named.path).is_ok_and(|found| found == *socket);
        self.wanted.sockets.iter().find(is_it).map(|named| named.origin.to_string())
    }

    pub(super) fn of_hidden(&self, root: &WirePath) -> OriginRule {
        let project = self.setup.policy.project.as_path();
        let is_root = |named: &&NamedPath| WirePath::from(leads_to(&project.join(&named.path)).path) == *root;
        if let Some(named) = self.wanted.hide.iter().find(is_root) {
            return (format!("the path is hidden: {root}"), Some(named.origin.to_string()));
        }
        let directories = &self.setup.directories;
        let own = [&directories.config, &directories.state, &directories.cache];
        let is_own = own.into_iter().any(|own| root.as_path().starts_with(leads_to(own).path));
        let whose = if is_own { ", which holds Bailiwick's own files" } else { "" };
        (format!("the path is hidden: {root}{whose}"), default())
    }

    pub(super) fn of_protected(&self, root: &WirePath) -> OriginRule {
        let project = self.setup.policy.project.as_path();
        let is_root = |named: &&NamedPath| WirePath::from(&project.join(&named.path)) == *root;
        let origin = self.wanted.protect.iter().find(is_root).map(|named| named.origin.to_string());
        let because = match &origin {
            Some(_) => format!("the path is protected: {root}"),
            None => format!("the path is protected: the user's own programs use {root}"),
        };
        (because, origin.or_else(default))
    }

    pub(super) fn of_key(&self, key: &str) -> String {
        self.effective.origin(key)
    }

    pub(super) fn of_element(&self, key: &str, word: &str) -> Option<String> {
        let elements = self.effective.get(key)?.value.as_ref()?.elements();
        elements.iter().find(|element| element.first() == word).map(|element| element.origin.to_string())
    }
}

#[expect(clippy::unnecessary_wraps, reason = "its origin is unknown")]
pub(super) fn default() -> Option<String> {
    Some(ConfigOrigin::Default.to_string())
}
