use std::fs::File;
use std::io::{self, Write};

use super::find;
use crate::engine::opening::Refusal;
use crate::journal::plans::Store;
use crate::process::exit::Exit;
use crate::settings::args::ExportArgs;

pub(super) fn run(store: &Store, args: &ExportArgs) -> Result<Exit, Refusal> {
    let kept = find(store, &args.plan)?;
    let bytes = kept.text.as_bytes();
    match &args.output {
        None => io::stdout().lock().write_all(bytes).map_err(Refusal::internal)?,
        Some(path) => {
            // An existing file or link, which an agent may have left, is not overwritten.
            let written = File::create_new(path).and_then(|mut file| file.write_all(bytes));
            written.map_err(|error| Refusal::usage(format!("cannot write {}: {error}", path.display())))?;
        }
    }
    Ok(Exit::Done)
}
