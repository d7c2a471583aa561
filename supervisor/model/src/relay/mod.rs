//! `bailiwick relay`: the model API for places that have neither key nor network.
//!
//! The relay holds the key and serves each of its clients on a socket of its own. It is no proxy: a request is understood as a
//! whole ([`request`]), written anew and sent with our own headers; what is not on the list of the API's members is refused by
//! its name, since one POST could otherwise search the web, run code or read other clients' files. Money is reserved before
//! and settled after ([`ledger`]), and what went through is logged without its text ([`log`]).
//!
//! [`Relay`] runs within any process of ours: clients are added and removed while it runs.

mod answer;
mod client;
mod ledger;
mod log;
mod passing;
mod patient;
#[expect(clippy::module_inception, reason = "the room is named after what it makes")]
mod relay;
mod request;
mod serve;
mod socket;
mod upstream;

pub use client::{ClientName, ClientSettings, Listen, NotAName, SOCKET_MODE, SOCKET_NAME, SocketSettings};
pub use ledger::{Account, Limits};
pub use relay::{FactsOf, MAX_REPLY, Relay, RelayError, Settings};
pub use socket::PlaceError;
