//! Tests of confinement against hostile commands, workers, projects and other agents. Each attack is really made, and
//! judged by the state of the victim.

mod between_agents;
mod builds;
mod caches;
mod containers;
mod denials;
mod hardening;
mod hidden;
mod hidden_places;
mod hostile;
mod levels;
mod owner;
mod protocol;
mod remedies;
mod rights;
mod secrets;
mod spare;
mod spare_attacked;
mod storm;
mod temps;
mod tools;
mod tripwire;
mod tripwire_commits;
mod tripwire_journal;
mod tripwire_references;
mod tripwire_remotes;
mod tripwire_sandbox;
mod tripwire_settings;
mod tripwire_sources;
