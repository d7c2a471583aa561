use std::io::{self, Write, stdout};
use std::path::Path;

use clap::CommandFactory;
use clap_complete::Shell;

use crate::process::exit::Exit;
use crate::process::messages::complain;
use crate::settings::args::Cli;

const NAME: &str = "bailiwick";

pub(super) fn completions(shell: Shell) -> Exit {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), NAME, &mut script);
    let mut out = stdout();
    match out.write_all(&script).and_then(|()| out.flush()) {
        // A reader that closed the pipe is no error.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            complain(&format!("cannot print the completions: {error}"));
            Exit::Internal
        }
        _ => Exit::Done,
    }
}

pub(super) fn man(directory: &Path) -> Exit {
    let written =
        std::fs::create_dir_all(directory).and_then(|()| clap_mangen::generate_to(Cli::command(), directory));
    match written {
        Ok(()) => Exit::Done,
        Err(error) => {
            complain(&format!("cannot write manual pages into {}: {error}", directory.display()));
            Exit::Internal
        }
    }
}
