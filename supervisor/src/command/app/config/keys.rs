//! Lists all settings (`bailiwick config keys`). Reads no settings file, so that it works even if a file is invalid.

use std::io::{self, Write};

use crate::process::exit::{Exit, printed};
use crate::process::messages::complain;
use crate::settings::args::KeysArgs;
use crate::settings::config::KEYS;

pub(super) fn run(args: &KeysArgs) -> Exit {
    let wanted = args.name.as_deref().unwrap_or_default();
    let keys: Vec<_> = KEYS.iter().filter(|key| key.name.contains(wanted)).collect();
    if keys.is_empty() {
        complain(&format!("no key has `{wanted}` in its name\n  hint: bailiwick config keys"));
        return Exit::Usage;
    }
    let print = || {
        let mut out = io::stdout().lock();
        for key in keys {
            let (expected, preset, may) = (key.expected(), key.default(), key.in_a_project());
            writeln!(
                out,
                "{}\n  {expected}; default: {preset}; a project's file: {may}\n  {}\n",
                key.name, key.about
            )?;
        }
        writeln!(
            out,
            r#"Further tables: [keys.MODE] sets keys of the terminal UI, [models."NAME"] describes a model, [agents.NAME] defines a role of sub-agents."#
        )
    };
    printed(print(), Exit::Done)
}
