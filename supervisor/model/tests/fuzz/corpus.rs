use std::fs;
use std::path::Path;

use bytes::Bytes;
use model::provider::ProviderKind;

pub(crate) struct Body {
    pub(crate) kind: ProviderKind,
    pub(crate) bytes: Bytes,
    pub(crate) name: String,
}

pub(crate) fn corpus() -> Vec<Body> {
    let streams = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/streams");
    let directories = ["anthropic", "chat", "responses"];
    let bodies = ProviderKind::ALL.into_iter().zip(directories).flat_map(|(kind, directory)| {
        let hostile = files(&streams.join("hostile"));
        let own = files(&streams.join(directory));
        own.into_iter().chain(hostile).map(move |(name, bytes)| Body { kind, bytes, name })
    });
    bodies.collect()
}

fn files(directory: &Path) -> Vec<(String, Bytes)> {
    let entries = fs::read_dir(directory).expect("a directory");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    let file = |path: &Path| (path.display().to_string(), Bytes::from(fs::read(path).expect("a file")));
    paths
        .iter()
        .filter(|path| path.extension().is_some_and(|ending| ending == "sse"))
        .map(|path| file(path))
        .collect()
}
