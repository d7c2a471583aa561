//! Environment variables of a command: the worker's own, filtered by `sandbox-exec`, and those that the call sets.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use ipc::confinement::Tier;
use ipc::effect::Exec;

/// Variable with options for each Java virtual machine. A Java program prints a message if the variable is set.
const JAVA_OPTIONS: &str = "JAVA_TOOL_OPTIONS";

/// Returns the variables of a command. `temp` is the command's own temporary directory, if it has one.
pub fn environment(exec: &Exec, temp: Option<&Path>, tier: Tier) -> Vec<(OsString, OsString)> {
    let mut variables: BTreeMap<OsString, OsString> = std::env::vars_os().collect();
    variables.insert("PWD".into(), exec.cwd.as_path().into());
    if let Some(temp) = temp {
        variables.insert("TMPDIR".into(), temp.into());
    }
    if let Some(temp) = variables.get(OsStr::new("TMPDIR")).filter(|_| tier != Tier::Full) {
        let options = java_options(variables.get(OsStr::new(JAVA_OPTIONS)), temp);
        variables.extend(options.map(|options| (JAVA_OPTIONS.into(), options)));
    }
    let set = exec.environment.iter();
    variables.extend(set.map(|(name, value)| (name.into(), value.as_path().into())));
    variables.into_iter().collect()
}

/// Returns options with which Java puts temporary files into `temp`. Without them Java uses `/tmp`, which the floor
/// tier does not permit. `None` if `said`, the user's value, names a directory, or if the path has white space or
/// quotes.
fn java_options(said: Option<&OsString>, temp: &OsStr) -> Option<OsString> {
    const PLACE: &[u8] = b"-Djava.io.tmpdir=";
    let said = said.map(|said| said.as_bytes()).unwrap_or_default();
    let breaks = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b'"' | b'\'');
    let is_said = said.windows(PLACE.len()).any(|part| part == PLACE);
    let blank: &[u8] = if said.is_empty() { b"" } else { b" " };
    let all = || OsString::from_vec([said, blank, PLACE, temp.as_bytes()].concat());
    (!is_said && !temp.as_bytes().iter().any(breaks)).then(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn java_is_led_to_the_temp_directory_unless_the_user_leads_it_elsewhere() {
        for (said, temp, expected) in [
            (None, "/t/1", Some("-Djava.io.tmpdir=/t/1")),
            (Some("-Xmx1g"), "/t/1", Some("-Xmx1g -Djava.io.tmpdir=/t/1")),
            (Some("-Djava.io.tmpdir=/mine"), "/t/1", None),
            (None, "/with blank/1", None),
            (None, "/with'quote", None),
        ] {
            let options = java_options(said.map(OsString::from).as_ref(), OsStr::new(temp));
            assert_eq!(options, expected.map(OsString::from), "{said:?} {temp}");
        }
    }

    #[test]
    fn in_the_full_tier_the_temp_directory_is_javas_own() {
        let exec = |environment| Exec {
            argv: vec!["true".into()],
            cwd: "/p".into(),
            environment,
            access: ipc::tool::Access::Standing,
            network: None,
            timeout_ms: 1,
        };
        let options = |tier, set: Vec<_>| {
            let all = environment(&exec(set), Some(Path::new("/t/1")), tier);
            all.into_iter().find(|(name, _)| name == JAVA_OPTIONS).map(|(_, value)| value)
        };
        assert_eq!(options(Tier::Full, vec![]), None);
        assert_eq!(options(Tier::Floor, vec![]), Some("-Djava.io.tmpdir=/t/1".into()));
        let own = vec![(JAVA_OPTIONS.into(), "-Xmx1g".into())];
        assert_eq!(options(Tier::Floor, own), Some("-Xmx1g".into()), "the call's own variables win");
    }
}
