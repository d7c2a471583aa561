mod keys;
mod show;
mod trust;

use crate::process::directories::Directories;
use crate::process::exit::Exit;
use crate::process::messages::complain;
use crate::settings::args::{ConfigArgs, ConfigCommand};
use crate::settings::config::Sources;

pub(super) fn run(args: ConfigArgs) -> Exit {
    if let Some(ConfigCommand::Keys(args)) = &args.command {
        return keys::run(args);
    }
    let directories = match Directories::of_process() {
        Ok(directories) => directories,
        Err(error) => {
            complain(&error);
            return Exit::Usage;
        }
    };
    let directory = match &args.command {
        Some(ConfigCommand::Trust(trust)) => &trust.directory,
        _ => &args.directory,
    };
    if let Err(error) = std::fs::read_dir(directory) {
        complain(&format!("cannot use {} as the project: {error}", directory.display()));
        return Exit::Usage;
    }
    match (Sources::read(&directories, directory), &args.command) {
        (Err(error), _) => {
            complain(&error);
            Exit::Usage
        }
        (Ok(sources), Some(ConfigCommand::Trust(args))) => trust::run(sources, args.forget),
        (Ok(sources), _) => show::run(&sources, &args),
    }
}
