//! `bailiwick config trust`: lists what a project's file would enable, and asks the person whether to trust the file.

use std::path::Path;

use protocol::shell_word::shell_word;

use crate::process::exit::Exit;
use crate::process::messages::{complain, say, tell};
use crate::settings::config::{PROJECT_NAME, Sources, asked, can_ask};

pub(super) fn run(mut sources: Sources, forget: bool) -> Exit {
    let Some(project) = sources.project().map(Path::to_owned) else { return Exit::Usage };
    tell(&sources.void().collect::<Vec<_>>());
    if forget {
        return match sources.forget() {
            Ok(true) => done("the project's settings are no longer trusted"),
            Ok(false) => done("the project's settings were not trusted"),
            Err(error) => internal(&error),
        };
    }
    let Some(question) = sources.question() else {
        return done(if sources.is_trusted() {
            "the project's settings are already trusted"
        } else {
            "nothing in the project needs your trust"
        });
    };
    if !can_ask() {
        complain(&format!(
            "cannot ask for your trust in {PROJECT_NAME}: standard input or standard error is not a terminal\n  hint: type \
             this command at a \
             terminal: bailiwick config trust -C {}",
            shell_word(&project)
        ));
        return Exit::Usage;
    }
    match asked(&question) {
        Ok(true) => match sources.trust(&question) {
            Ok(()) => done("trusted in this form; after a change you are asked again"),
            Err(error) => internal(&error),
        },
        Ok(false) => done("not trusted"),
        Err(error) => internal(&error),
    }
}

fn done(text: &str) -> Exit {
    say(&format!("{PROJECT_NAME}: {text}"));
    Exit::Done
}

fn internal(error: &impl std::fmt::Display) -> Exit {
    complain(error);
    Exit::Internal
}
