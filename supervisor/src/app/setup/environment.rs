//! The environment of a session, as its flags and its owner have it.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use ipc::confinement::Environment;

use super::error::SetupError;
use crate::policy::{Owner, split_variable};

/// What passes of the environment: what the flags say, and who works as another is at home there.
pub(super) fn environment(
    flags: &[OsString],
    owner: Option<&Owner>,
    temp: &Path,
) -> Result<Environment, SetupError> {
    let mut environment = of_flags(flags)?;
    if let Some(owner) = owner {
        at_home(&mut environment, owner, temp);
    }
    Ok(environment)
}

/// The home of whom workers run as.
pub(super) fn home(owner: Option<&Owner>) -> Option<PathBuf> {
    match owner {
        Some(owner) => owner.home.clone(),
        None => std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute()),
    }
}

/// Sets the variables that say who one is, unless the user did. Who has no home has one in the temp directory.
fn at_home(environment: &mut Environment, owner: &Owner, temp: &Path) {
    let home = owner.home.as_deref().unwrap_or(temp);
    let mut said = vec![("HOME", home.as_os_str().as_bytes().to_vec())];
    for name in ["USER", "LOGNAME"] {
        let value = owner.name.clone().unwrap_or_else(|| owner.identity.uid.to_string());
        said.push((name, value.into_bytes()));
    }
    for (name, value) in said {
        let named = environment.pass.iter().any(|passed| passed == name)
            || environment.set.iter().any(|(set, _)| set == name);
        if !named {
            environment.set.push((name.to_owned(), value));
        }
    }
}

fn of_flags(flags: &[OsString]) -> Result<Environment, SetupError> {
    let mut environment = Environment::default();
    for flag in flags {
        let (name, value) = split_variable(flag).ok_or_else(|| SetupError::Env(flag.clone()))?;
        match value {
            Some(value) => environment.set.push((name.to_owned(), value.to_vec())),
            None => environment.pass.push(name.to_owned()),
        }
    }
    Ok(environment)
}

#[cfg(test)]
mod tests {
    use ipc::confinement::Identity;

    use super::*;

    #[test]
    fn who_works_as_another_is_at_home_there_unless_the_user_says_otherwise() {
        let identity = Identity { uid: 12345, gid: 12345 };
        let owner = Owner { identity, name: Some("me".to_owned()), home: Some("/home/me".into()) };
        let set = |environment: &Environment| {
            let pairs =
                environment.set.iter().map(|(name, value)| format!("{name}={}", value.escape_ascii()));
            pairs.collect::<Vec<_>>().join(" ")
        };
        let mut ours = Environment::default();
        at_home(&mut ours, &owner, Path::new("/tmp/bw-1"));
        assert_eq!(set(&ours), "HOME=/home/me USER=me LOGNAME=me");
        let mut said = of_flags(&["HOME=/x".into(), "USER".into()]).unwrap();
        at_home(&mut said, &Owner { name: None, home: None, ..owner.clone() }, Path::new("/tmp/bw-1"));
        assert_eq!(set(&said), "HOME=/x LOGNAME=12345");
        let mut homeless = Environment::default();
        at_home(&mut homeless, &Owner { home: None, ..owner }, Path::new("/tmp/bw-1"));
        assert!(set(&homeless).starts_with("HOME=/tmp/bw-1 "));
    }

    #[test]
    fn env_flags_pass_or_set() {
        let flags = ["FOO", "BAR=a=b", "EMPTY="].map(OsString::from);
        let environment = of_flags(&flags).unwrap();
        assert_eq!(environment.pass, ["FOO"]);
        assert_eq!(environment.set, [("BAR".to_owned(), b"a=b".to_vec()), ("EMPTY".to_owned(), vec![])]);
        for bad in ["", "=x", "A-B", "1A", "A B=c"] {
            assert!(of_flags(&[bad.into()]).is_err(), "{bad}");
        }
    }
}
