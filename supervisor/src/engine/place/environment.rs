use std::ffi::OsString;
use std::path::PathBuf;

use boundary::policy::{Owner, split_variable};
use ipc::confinement::Environment;

use super::error::SetupError;

/// Returns the home of the user that workers run as; `None` if the home is unknown.
pub(super) fn home(owner: Option<&Owner>) -> Option<PathBuf> {
    match owner {
        Some(owner) => owner.home.clone(),
        None => std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute()),
    }
}

/// Parses the values of `--env`: `NAME` passes a variable on, `NAME=VALUE` sets one.
pub(super) fn of_flags(flags: &[OsString]) -> Result<Environment, SetupError> {
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
    use super::*;

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
