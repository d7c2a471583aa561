use std::path::Path;

use clap::Parser;

use super::super::command::{BatchPlaces, exec_arguments};
use super::super::task::{BatchTask, TaskLimits, TaskSource};
use crate::settings::args::{Cli, Command, ExecArgs, ModeArg, OutputFormat};

fn exec(batch: &str, limits: TaskLimits) -> ExecArgs {
    let line = ["bailiwick", "batch", "tasks"].into_iter().chain(batch.split_whitespace());
    let Some(Command::Batch(args)) = Cli::try_parse_from(line).unwrap().command else { unreachable!() };
    let source = TaskSource::Copy { directory: "/x".into() };
    let task = BatchTask { id: "t".to_owned(), prompt: "p".to_owned(), source, limits };
    let places =
        BatchPlaces { project: "/o/work/t.1/tree/checkout".into(), patch: "/o/work/t.1/patch.diff".into() };
    let arguments = exec_arguments(&args.runs, &task, &places);
    let line = ["bailiwick".into(), "exec".into()].into_iter().chain(arguments);
    let Some(Command::Exec(args)) = Cli::try_parse_from(line).unwrap().command else { unreachable!() };
    args
}

#[test]
fn exec_is_told_what_the_batch_was_told() {
    let args = exec(
        "--net on --reach host --reach lan --write /w --socket /s --hide /h --env A=b --allow-degraded --forget-caches --baseline mine --tier floor --model m \
         --provider openai --base-url http://x/ --max-steps 3 --max-tokens 4 --max-usd 0.25 --timeout 1.5 \
         --activity plan --approve-plan=2",
        TaskLimits::default(),
    );
    insta::assert_debug_snapshot!((
        args.mode,
        args.activity,
        args.approve_plan,
        &args.confinement,
        &args.model
    ));
    assert_eq!((args.max_steps, args.max_tokens, args.max_usd), (Some(3), Some(4), "0.25".parse().ok()));
    assert_eq!(args.timeout, Some(std::time::Duration::from_millis(1500)));
    assert_eq!(args.directory, Path::new("/o/work/t.1/tree/checkout"));
    assert_eq!(args.patch.as_deref(), Some(Path::new("/o/work/t.1/patch.diff")), "out of the agent's reach");
    assert_eq!(args.output, OutputFormat::Json);
}

#[test]
fn a_tasks_own_limits_take_the_place_of_the_batchs() {
    let limits = TaskLimits { max_steps: Some(7), timeout_s: Some(2.0), ..TaskLimits::default() };
    let args = exec("--max-steps 3 --max-tokens 4", limits);
    assert_eq!((args.max_steps, args.max_tokens, args.mode), (Some(7), Some(4), ModeArg::Auto));
    assert_eq!(args.timeout, Some(std::time::Duration::from_secs(2)));
}
