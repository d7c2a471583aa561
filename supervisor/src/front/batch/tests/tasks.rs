use std::fs;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::choice::BatchChoice;
use super::super::swe_bench;
use super::super::task::{BatchTask, TaskSource, Tasks, read};

struct Files(tempfile::TempDir);

impl Files {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn file(&self, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.path().join("tasks");
        fs::write(&path, text).unwrap();
        path
    }

    fn tasks(&self, text: &str) -> Result<Tasks, String> {
        read(&self.file(text)).map_err(|error| error.to_string())
    }

    fn fault(&self, text: &str) -> String {
        let error = self.tasks(text).unwrap_err();
        error.replace(&self.0.path().display().to_string(), "")
    }
}

fn line(id: &str) -> String {
    json!({"id": id, "prompt": "do it", "directory": "here"}).to_string()
}

#[test]
fn tasks_come_from_directories_and_from_commits_beside_their_file() {
    let files = Files::new();
    let commit = json!({
        "instance_id": "b.1", "prompt": "fix", "repo": "/srv/x", "base_commit": "0123abc", "max_usd": 0.5, "timeout_s": 9,
    });
    let tasks = files.tasks(&format!("{}\n\n{commit}\n", line("a"))).unwrap().list;
    let near = files.0.path().canonicalize().unwrap();
    assert_eq!(tasks[0].source, TaskSource::Copy { directory: near.join("here") });
    let repository = PathBuf::from("/srv/x");
    assert_eq!(tasks[1].source, TaskSource::Commit { repository, commit: "0123abc".to_owned() });
    assert_eq!((tasks[1].limits.max_usd, tasks[1].limits.timeout_s), ("0.5".parse().ok(), Some(9.0)));
}

#[test]
fn the_digest_changes_with_the_file() {
    let files = Files::new();
    let one = files.tasks(&line("a")).unwrap().digest;
    assert_eq!(one, files.tasks(&line("a")).unwrap().digest);
    assert_ne!(one, files.tasks(&(line("a") + "\n")).unwrap().digest);
}

#[test]
fn an_id_that_is_no_name_of_a_file_is_refused_with_its_line() {
    let files = Files::new();
    for id in ["", ".", "..", "../x", "a/b", "-a", "_a", "a b", "a\n", "ä", "a\0", &"x".repeat(129)] {
        let fault = files.fault(&format!("{}\n{}\n", line("a1"), line(id)));
        assert!(fault.starts_with("cannot use task 2 in /tasks: expected an id"), "{id:?}: {fault}");
    }
    assert!(files.tasks(&line(&"x".repeat(128))).is_ok());
}

#[test]
fn tasks_that_cannot_be_run_are_refused_by_their_line() {
    let files = Files::new();
    let with = |member: &str, value: Value| {
        let mut task: Value = serde_json::from_str(&line("a")).unwrap();
        task[member] = value;
        task.to_string()
    };
    let cases = [
        (format!("{}\n{}", line("a"), line("A")), "task 2 in /tasks: an earlier task has the id A already"),
        (with("prompt", " ".into()), "expected a prompt with text"),
        (with("repo", "/x".into()), "expected `directory`, or `repo` and `base_commit`, or `image`"),
        (with("max_steps", 0.into()), "expected limits above 0"),
        (with("timeout_s", (-1).into()), "a timeout_s from 0.001"),
        (with("maxsteps", 3.into()), "unknown field `maxsteps`"),
        ("[]".to_owned(), "task 1"),
        ("\n \n".to_owned(), "the file has no task"),
        ("PAR1\0\0".to_owned(), "this is a Parquet file\n  hint: python3 -c"),
        ("x".repeat((8 << 20) + 1), "cannot read line 1 of /tasks: the line is longer than 8 MiB"),
    ];
    for (text, told) in cases {
        let fault = files.fault(&text);
        assert!(fault.contains(told), "{fault}");
    }
    for commit in ["--upload-pack=x", "main", "HEAD", "012345", "0123abg"] {
        let task = json!({"id": "a", "prompt": "p", "repo": "/x", "base_commit": commit}).to_string();
        assert!(files.fault(&task).contains("base_commit: expected"), "{commit}");
    }
}

fn instance(id: &str) -> Value {
    json!({
        "instance_id": id, "repo": "astropy/astropy", "base_commit": "d16bfe05a744909de4b27f5875fe0d4ed41ce607",
        "problem_statement": "It {fails} for {repo}", "version": "4.3", "patch": "the fix", "test_patch": "its tests",
        "hints_text": "a hint", "FAIL_TO_PASS": "[\"t\"]", "created_at": 1,
    })
}

fn swe_bench(files: &Files, text: &str, template: Option<&Path>) -> Result<Tasks, String> {
    let repos = files.0.path().join("repos");
    fs::create_dir_all(repos.join("astropy__astropy")).unwrap();
    swe_bench::read(&files.file(text), Some(&repos), template).map_err(|error| error.to_string())
}

#[test]
fn instances_are_read_from_lines_and_from_an_array_alike() {
    let files = Files::new();
    let rows = [instance("astropy__astropy-12907"), instance("astropy__astropy-13033")];
    let lines = rows.each_ref().map(Value::to_string).join("\n");
    let from_lines = swe_bench(&files, &lines, None).unwrap().list;
    let from_array = swe_bench(&files, &serde_json::to_string_pretty(&rows).unwrap(), None).unwrap().list;
    assert_eq!(from_lines, from_array);
    let prompt = &from_lines[0].prompt;
    assert!(
        prompt.contains("<issue>\nIt {fails} for {repo}\n</issue>"),
        "a value is not a template: {prompt}"
    );
    assert!(prompt.contains("the repository astropy/astropy,") && !prompt.contains("the fix"), "{prompt}");
    assert!(!prompt.contains("a hint") && !prompt.contains("its tests"), "{prompt}");
    assert_eq!(from_lines[1].id, "astropy__astropy-13033");
}

#[test]
fn a_template_of_ones_own_takes_the_place_of_ours() {
    let files = Files::new();
    let template = files.0.path().join("template");
    fs::write(&template, "{instance_id} {version} {unknown} {{repo}} {").unwrap();
    let tasks = swe_bench(&files, &instance("a__b-1").to_string(), Some(&template)).unwrap().list;
    assert_eq!(tasks[0].prompt, "a__b-1 4.3 {unknown} {astropy/astropy} {");
}

#[test]
fn instances_have_images_of_their_data_sets() {
    let files = Files::new();
    let image = |row: Value| {
        let tasks = swe_bench::read(&files.file(row.to_string()), None, None);
        tasks.map(|tasks| tasks.list[0].source.clone()).map_err(|error| error.to_string())
    };
    let named = |image: &str, project: &str| TaskSource::Image {
        image: image.to_owned(),
        project: project.to_owned(),
    };
    let verified = image(instance("astropy__astropy-12907")).unwrap();
    let name = "docker.io/swebench/sweb.eval.x86_64.astropy_1776_astropy-12907:latest";
    assert_eq!(verified, named(name, "/testbed"));
    let mut pro = instance("instance_a__b-1");
    pro["dockerhub_tag"] = "a.b-a__b-1".into();
    assert_eq!(image(pro).unwrap(), named("docker.io/jefzda/sweap-images:a.b-a__b-1", "/app"));
    let mut own = instance("a__b-1");
    own["image_name"] = "reg:5000/x/y:z".into();
    assert_eq!(image(own.clone()).unwrap(), named("reg:5000/x/y:z", "/testbed"));
    let mut newer = instance("a__b-1");
    newer["image"] = "swebench/a__b-1:v5".into();
    assert_eq!(image(newer).unwrap(), named("swebench/a__b-1:v5", "/testbed"));
    for hostile in ["--privileged", "", "x y", "x\n", "-v/:/x"] {
        own["image_name"] = hostile.into();
        assert!(image(own.clone()).unwrap_err().contains("image: expected a name"), "{hostile}");
    }
}

#[test]
fn pro_has_requirements_and_an_interface_in_its_statement() {
    let files = Files::new();
    let mut row = instance("instance_a__b-1");
    row["requirements"] = "- must work".into();
    row["interface"] = "f(x)".into();
    let prompt = swe_bench(&files, &row.to_string(), None).unwrap().list[0].prompt.clone();
    assert!(prompt.contains("\n\nRequirements:\n- must work\n\nInterface:\nf(x)\n</issue>"), "{prompt}");
}

#[test]
fn instances_without_a_clone_or_with_a_hostile_repo_are_refused() {
    let files = Files::new();
    for (repo, told) in [
        ("django/django", "no clone of django/django\n  hint: git clone https://github.com/django/django"),
        ("../..", "repo: expected OWNER/NAME"),
        ("a/b/../..", "repo: expected OWNER/NAME"),
        ("astropy", "repo: expected OWNER/NAME"),
    ] {
        let mut row = instance("a__b-1");
        row["repo"] = repo.into();
        for text in [row.to_string(), json!([row]).to_string()] {
            let fault = swe_bench(&files, &text, None).unwrap_err();
            assert!(fault.contains("task 1 in") && fault.contains(told), "{fault}");
        }
    }
    assert!(swe_bench(&files, "[{\"instance_id\":1}]", None).is_err());
    assert!(swe_bench(&files, "[] x", None).is_err());
}

fn numbered(count: usize) -> Vec<BatchTask> {
    let source = TaskSource::Copy { directory: PathBuf::from("/x") };
    let task = |index| BatchTask {
        id: format!("t{index}"),
        prompt: "p".to_owned(),
        source: source.clone(),
        limits: super::super::task::TaskLimits::default(),
    };
    (0..count).map(task).collect()
}

fn chosen(count: usize, filter: Option<&str>, slice: Option<&str>, shard: Option<&str>) -> Vec<String> {
    let choice = BatchChoice::new(filter, slice, shard).unwrap();
    choice.of(numbered(count)).into_iter().map(|task| task.id).collect()
}

#[test]
fn a_filter_comes_before_a_slice_and_a_slice_before_a_shard() {
    assert_eq!(chosen(20, Some("^t1"), Some("1:5"), Some("2/2")), ["t11", "t13"]);
    assert_eq!(chosen(3, None, Some(":2"), None), ["t0", "t1"]);
    assert_eq!(chosen(3, None, Some("2:"), None), ["t2"]);
    assert!(chosen(3, None, Some("2:2"), None).is_empty());
    for slice in ["3:2", "x", "1", "-1:2", "1:2:3"] {
        assert!(BatchChoice::new(None, Some(slice), None).is_err(), "{slice}");
    }
    for shard in ["0/2", "3/2", "1/0", "1", "a/b"] {
        assert!(BatchChoice::new(None, None, Some(shard)).is_err(), "{shard}");
    }
    assert!(BatchChoice::new(Some("("), None, None).is_err());
}

proptest! {
    #[test]
    fn shards_are_a_partition(tasks in 0_usize..60, shards in 1_usize..12) {
        let shards: Vec<_> = (1..=shards).map(|shard| chosen(tasks, None, None, Some(&format!("{shard}/{shards}")))).collect();
        let mut all: Vec<_> = shards.iter().flatten().cloned().collect();
        prop_assert_eq!(all.len(), tasks, "none twice, none lost");
        all.sort_unstable();
        all.dedup();
        prop_assert_eq!(all.len(), tasks);
        let sizes = shards.iter().map(Vec::len);
        prop_assert!(sizes.clone().max().unwrap() - sizes.min().unwrap() <= 1, "even");
    }
}
