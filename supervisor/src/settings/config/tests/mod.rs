mod arbitrary;
mod merging;
mod parsing;
mod reference;

use std::path::Path;

use super::parse::{FileOwner, parse};
use super::{Effective, Layer, Layers, merge};

fn user(text: &str) -> Layer {
    parse(text, Path::new("/c/config.toml"), FileOwner::Users).unwrap()
}

fn project(text: &str) -> Layer {
    parse(text, Path::new(".bailiwick.toml"), FileOwner::Projects).unwrap()
}

fn merged(flags: &Layer, user: &Layer, project: &Layer, trusted: bool) -> Effective {
    merge(Layers { flags, environment: &Layer::default(), user, project, trusted })
}
