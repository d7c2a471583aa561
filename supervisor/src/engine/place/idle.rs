use std::ffi::OsStr;
use std::path::Path;

use boundary::policy::split_variable;

use crate::settings::config::{ConfigOrigin, Effective, Element};

/// Returns a note for each flag that has no effect and so may be a typing error. Settings files are not checked,
/// because they may be for several machines.
pub(crate) fn idle_flags(effective: &Effective, project: &Path) -> Vec<String> {
    let is_set = |name: &OsStr| std::env::var_os(name).is_some();
    let mut notes: Vec<_> = by_flag(effective.hide()).filter_map(|path| absent(project, path)).collect();
    notes.extend(by_flag(effective.env()).filter_map(|setting| unset(setting, is_set)));
    let reaches = by_flag(effective.elements("rights.reach")).next().is_some();
    if reaches && effective.net().is_off() {
        // If a setting turns the network off, the flag may not help.
        let hint = if effective.is_set("rights.net") { "" } else { "\n  hint: --net on" };
        notes.push(format!("--reach has no effect while the network is off{hint}"));
    }
    notes
}

fn by_flag(elements: &[Element]) -> impl Iterator<Item = &OsStr> {
    elements.iter().filter(|one| matches!(one.origin, ConfigOrigin::Flag(_))).map(Element::first)
}

fn absent(project: &Path, path: &OsStr) -> Option<String> {
    let is_there = project.join(path).symlink_metadata().is_ok();
    (!is_there).then(|| format!("--hide {:?}: there is no such file or directory", path.display()))
}

fn unset(setting: &OsStr, is_set: impl Fn(&OsStr) -> bool) -> Option<String> {
    let (name, value) = split_variable(setting)?;
    (value.is_none() && !is_set(OsStr::new(name))).then(|| format!("--env {name}: this variable is not set"))
}
