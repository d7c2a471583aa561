//! `bailiwick batch`: runs many tasks, each by `exec` in its own checkout, with results that survive interruptions.
//!
//! The batch opens no file inside a checkout: `bailiwick sandbox` makes and removes it.

mod beneath;
mod choice;
mod command;
mod contained;
mod engine;
mod instance;
mod merge;
mod output;
mod predictions;
mod preflight;
mod presence;
mod process;
mod progress;
mod report;
mod schedule;
mod state;
mod swe_bench;
mod task;
#[cfg(test)]
mod tests;
mod trajectory;

use std::io;
use std::path::{Path, PathBuf};

use boundary::policy::users_home;

use self::choice::BatchChoice;
use self::command::Runs;
use self::contained::{images, remove_all};
use self::output::{BatchOutput, Manifest};
use self::preflight::{BatchMachine, missing};
use self::progress::BatchProgress;
use self::schedule::Schedule;
use self::task::{TaskSource, Tasks, read};
use crate::engine::opening::{Refusal, SessionDirs};
use crate::process::exit::Exit;
use crate::process::messages::{complain, tell};
use crate::process::signals::Endings;
use crate::settings::args::{
    ActivityArg, BatchArgs, BatchCommand, BatchReportArgs, BatchRunsArgs, EngineArg, ModeArg, SweBenchArgs,
    of_batch,
};
use crate::settings::config::{Effective, McpFile, Sources};

pub(crate) async fn run(args: BatchArgs, place: SessionDirs) -> Exit {
    let ended = match args.command {
        Some(BatchCommand::Report(BatchReportArgs { results, json })) => report::print(&results, json),
        Some(BatchCommand::Merge(args)) => merge::run(&args),
        Some(BatchCommand::SweBench(args)) => {
            let SweBenchArgs { file, repos, template, runs } = *args;
            let repos = repos.as_deref();
            match swe_bench::read(&file, repos, template.as_deref()) {
                Ok(_) if repos.is_none() == (runs.engine == EngineArg::None) => Err(Refusal::usage(
                    "expected exactly one of --engine and --repos\n  hint: --engine docker runs the tasks in their images, --repos DIR in clones of their repositories",
                )),
                Ok(tasks) => carry_out(&file, tasks, &runs, place).await,
                Err(error) => Err(Refusal::usage(error)),
            }
        }
        None => match args.file.as_deref().map(|file| (file, read(file))) {
            Some((file, Ok(tasks))) => carry_out(file, tasks, &args.runs, place).await,
            Some((_, Err(error))) => Err(Refusal::usage(error)),
            None => Err(Refusal::usage("no tasks given\n  hint: bailiwick batch FILE")),
        },
    };
    ended.unwrap_or_else(|Refusal(exit, message)| {
        complain(&message);
        exit
    })
}

async fn carry_out(
    file: &Path,
    Tasks { list, digest, is_swe_bench }: Tasks,
    args: &BatchRunsArgs,
    place: SessionDirs,
) -> Result<Exit, Refusal> {
    check(args)?;
    let endings = Endings::new().map_err(Refusal::internal)?;
    let choice = BatchChoice::new(args.filter.as_deref(), args.slice.as_deref(), args.shard.as_deref());
    let chosen = choice.map_err(Refusal::usage)?.of(list);
    if chosen.is_empty() {
        return Err(Refusal::usage(format!(
            "{}: the flags choose none of the tasks in this file",
            file.display()
        )));
    }
    if let Some(task) = chosen.iter().find(|task| matches!(task.source, TaskSource::Image { .. }))
        && args.engine == EngineArg::None
    {
        let text = format!(
            "the task {} needs a container image\n  hint: use --engine docker or --engine podman",
            task.id
        );
        return Err(Refusal::usage(text));
    }
    let directory = args.output.clone().unwrap_or_else(|| beside(file));
    let output = BatchOutput::open(&directory).map_err(Refusal::usage)?;
    let sources = Sources::read(&place.directories, output.root()).map_err(Refusal::usage)?;
    let flags = of_batch(args);
    let effective = sources.effective(&flags);
    tell(&sources.notices(&effective, &flags));
    let servers = check_servers(args, &effective)?;
    let name = args.name.clone().unwrap_or_else(|| format!("bailiwick/{}", effective.model()));
    let manifest = Manifest::new(digest, name, &effective, args).with_servers(servers.as_ref());
    let begins = output.agree(&manifest).and_then(|()| output.choose(chosen.iter().map(|task| &*task.id)));
    begins.map_err(Refusal::usage)?;
    let hidden = hidden(file, &output).map_err(Refusal::usage)?;
    let model = [effective.model().to_owned(), effective.provider().as_str().to_owned()];
    let runs = Runs::new(args, place.keys, hidden, output.root(), model).map_err(Refusal::usage)?;
    if let Some(engine) = runs.engine() {
        let machine = BatchMachine::here(&BatchMachine::images_of(engine));
        if let Some(refusal) = machine.refusal().filter(|_| is_swe_bench) {
            return Err(Refusal::usage(refusal));
        }
        // This is also the first check that the engine works.
        remove_all(engine, output.root()).await.map_err(Refusal::usage)?;
        let has = images(engine, output.root()).await.map_err(Refusal::usage)?;
        let missing = missing(&chosen, &has);
        if missing > 0 {
            tell(&[format!(
                "{missing} of {} images are not on this machine yet: {} downloads them",
                chosen.len(),
                engine.program
            )]);
        }
        tell(&machine.shortfalls(missing, args.jobs.into()));
    }
    let progress = BatchProgress::new(args.json, usize::from(args.jobs));
    let schedule = Schedule { output, runs, manifest, progress, endings, limits: args.into() };
    schedule.run(chosen).await
}

fn check(args: &BatchRunsArgs) -> Result<(), Refusal> {
    if args.mode == ModeArg::Ask {
        return Err(Refusal::usage("--mode ask: a batch has nobody to ask\n  hint: --mode auto"));
    }
    if args.approve_plan.is_some() && args.activity != ActivityArg::Plan {
        return Err(Refusal::usage("--approve-plan works only with --activity plan"));
    }
    if !args.allow_tool.is_empty() && args.activity == ActivityArg::Plan {
        return Err(Refusal::usage("--allow-tool: --activity plan has agents that no flag lets call more"));
    }
    let servers =
        [("--mcp", !args.servers.mcp.is_empty()), ("--mcp-config", args.servers.mcp_config.is_some())];
    if let Some((flag, _)) =
        servers.into_iter().find(|(_, is_given)| *is_given && args.engine != EngineArg::None)
    {
        return Err(Refusal::usage(format!(
            "{flag} cannot be used with --engine: your MCP servers do not run in containers\n  hint: leave out --engine"
        )));
    }
    Ok(())
}

/// Returns the servers of `--mcp-config`. Fails if a flag names an MCP server that is not in the settings, or if the
/// file cannot be used, because each task would then fail.
fn check_servers(args: &BatchRunsArgs, effective: &Effective) -> Result<Option<McpFile>, Refusal> {
    let is_known = |name: &String| effective.mcp.iter().any(|server| server.enabled && server.name == *name);
    if let Some(name) = args.servers.mcp.iter().find(|name| !is_known(name)) {
        return Err(Refusal::usage(format!(
            "--mcp {name}: your settings have no such MCP server\n  hint: bailiwick mcp list"
        )));
    }
    let file = args.servers.mcp_config.as_deref().map(|file| McpFile::read(file, effective));
    file.transpose().map_err(Refusal::usage)
}

/// Returns the default directory of results. Its name is that of the file of tasks, with the extension `batch`.
fn beside(file: &Path) -> PathBuf {
    let stem = file.file_stem().unwrap_or(file.as_os_str());
    PathBuf::from(stem).with_added_extension("batch")
}

/// Returns the paths that agents may not read, because they contain other results or the expected solution: the
/// results, the file of tasks, and the data next to it.
fn hidden(file: &Path, output: &BatchOutput) -> io::Result<Vec<PathBuf>> {
    let file = file.canonicalize()?;
    let beside = beside_the_tasks(&file, output.root())?;
    Ok([vec![output.instances(), output.predictions(), file], beside].concat())
}

/// Returns the directory of the file of tasks. If a run needs something in this directory, returns the files in the
/// directory instead. Leaves out the dotfiles of a home directory, because tools read them.
fn beside_the_tasks(file: &Path, output: &Path) -> io::Result<Vec<PathBuf>> {
    let Some(input) = file.parent() else { return Ok(Vec::new()) };
    let home = users_home();
    let needed =
        [Some(output.to_owned()), home.clone(), std::env::current_exe().ok(), Some(std::env::temp_dir())];
    if !needed.iter().flatten().any(|place| place.starts_with(input)) {
        return Ok(vec![input.to_owned()]);
    }
    let mut files = Vec::new();
    for entry in std::fs::read_dir(input)? {
        let entry = entry?;
        let is_setting =
            home.as_deref() == Some(input) && entry.file_name().as_encoded_bytes().starts_with(b".");
        if entry.file_type()?.is_file() && !is_setting {
            files.push(entry.path());
        }
    }
    Ok(files)
}
