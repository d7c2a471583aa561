//! `bailiwick relay`: gives programs that have neither key nor network access to the model's API.
//!
//! Each client has a separate socket. Each request is parsed completely ([`request`]) and serialised again with the
//! relay's own headers. Unknown fields are rejected, since a request could otherwise search the web, run code or read
//! other clients' files at the provider. Money is reserved before and charged after each request ([`ledger`]).

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
