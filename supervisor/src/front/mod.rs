pub(crate) mod acp;
pub(crate) mod batch;
pub mod demo;
pub(crate) mod exec;
pub(crate) mod sandbox;
pub(crate) mod serve;
pub mod terminal_ui;
mod wire;
