use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::command::PATCH;
use super::instance::MOST_PATCH;
use super::output::BatchOutput;
use super::state::{BatchState, read_bounded, replace};

#[derive(Debug, Serialize, Deserialize)]
struct Prediction<'a> {
    instance_id: &'a str,
    model_name_or_path: &'a str,
    model_patch: &'a str,
}

pub(super) struct Predictions<'a> {
    output: &'a BatchOutput,
    name: &'a str,
}

impl<'a> Predictions<'a> {
    pub(super) fn new(output: &'a BatchOutput, name: &'a str) -> Self {
        Self { output, name }
    }

    fn lines(&self) -> PathBuf {
        self.output.predictions().join("predictions.jsonl")
    }

    /// Rewrites `predictions.jsonl` from the tasks' states, because a killed batch may have left lines out.
    pub(super) fn restore(&self, states: &[BatchState]) -> io::Result<()> {
        replace(&self.lines(), |file| {
            let mut finals = states.iter().filter(|state| state.status.is_final());
            finals.try_for_each(|state| file.write_all(&self.line(&state.id)?))
        })
    }

    pub(super) fn add(&self, id: &str) -> io::Result<()> {
        let path = self.lines();
        let line = self.line(id)?;
        replace(&path, |file| {
            io::copy(&mut File::open(&path)?, file)?;
            file.write_all(&line)
        })
    }

    pub(super) fn finish(&self, states: &[BatchState]) -> io::Result<()> {
        replace(&self.output.predictions().join("preds.json"), |file| {
            let finals = states.iter().filter(|state| state.status.is_final());
            let mut before = "{";
            for state in finals {
                let line = self.line(&state.id)?;
                write!(file, "{before}\n{}: ", serde_json::to_string(&state.id)?)?;
                file.write_all(line.trim_ascii_end())?;
                before = ",";
            }
            file.write_all(if before == "{" { b"{}\n" } else { b"\n}\n" })
        })
    }

    fn line(&self, id: &str) -> io::Result<Vec<u8>> {
        let patch = read_bounded(&self.output.instance(id).join(PATCH), MOST_PATCH)?;
        let patch = String::from_utf8(patch).map_err(|_| io::Error::from(io::ErrorKind::InvalidData))?;
        let prediction = Prediction { instance_id: id, model_name_or_path: self.name, model_patch: &patch };
        let mut line = serde_json::to_vec(&prediction)?;
        line.push(b'\n');
        Ok(line)
    }
}
