//! Forwards a reply to a client, counts its tokens, and charges them at the end.
//!
//! Each chunk is read after the previous one was sent. If the client hangs up, the connection to the provider is
//! closed, and the reserved money is charged.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use bytes::Bytes;
use futures_util::Stream;
use hyper::body::{Body, Frame};
use protocol::cost::{Prices, Usd};
use tokio::sync::OwnedSemaphorePermit;

use super::ledger::Reservation;
use super::log::{RelayLog, RelayLogEntry};
use super::request::{CountedPrompts, Trail};
use crate::provider::ProviderError;
use crate::provider::meter::Meter;

pub(super) type Upstream = Pin<Box<dyn Stream<Item = Result<Bytes, ProviderError>> + Send>>;

pub(super) struct RelayPassing {
    pub(super) meter: Meter,
    pub(super) prices: Prices,
    /// Token counts of the client's earlier prompts. At the end of the reply, that of this request's prompt is added.
    pub(super) counted: Arc<CountedPrompts>,
    pub(super) trail: Trail,
    pub(super) reservation: Option<Reservation>,
    pub(super) entry: RelayLogEntry,
    pub(super) began: Instant,
    pub(super) log: Arc<RelayLog>,
    /// Memory reserved for the body of the request; `None` once the body has been sent.
    pub(super) room: Option<OwnedSemaphorePermit>,
}

impl RelayPassing {
    fn note(&mut self, piece: &[u8]) {
        if self.entry.first_byte_ms.is_none() {
            self.entry.first_byte_ms = Some(millis(self.began));
        }
        self.entry.reply_bytes += piece.len() as u64;
        self.meter.push(piece);
    }

    pub(super) fn release(mut self, status: u16, end: &'static str, why: String) {
        if let Some(reservation) = self.reservation.take() {
            reservation.release();
        }
        (self.entry.status, self.entry.end, self.entry.why) = (status, end, Some(why));
        self.write();
    }

    pub(super) fn cut(mut self, status: u16, why: String) {
        (self.entry.status, self.entry.why) = (status, Some(why));
        self.end("broken");
    }

    /// Charges and logs the reply. If the provider counted a whole reply, its count applies even if the client hung up.
    fn end(&mut self, end: &'static str) {
        let Some(reservation) = self.reservation.take() else { return };
        self.entry.usage = self.meter.usage();
        if let Some(usage) = self.meter.usage() {
            self.counted.learn(&self.trail, usage.prompt());
        }
        let is_whole = self.meter.is_final();
        let has_failed = self.meter.has_failed();
        let cost = match (is_whole, self.meter.usage()) {
            (true, Some(usage)) => reservation.settle(&usage, &self.prices),
            // The provider sent an error in place of a reply.
            (_, None) if has_failed => {
                reservation.release();
                Usd::ZERO
            }
            (_, usage) => reservation.settle_cut(usage.as_ref(), &self.prices),
        };
        self.entry.cost_usd = Some(cost);
        self.entry.end = match end {
            _ if has_failed && !is_whole => "upstream_error",
            "hung_up" if is_whole => "complete",
            "complete" if !is_whole => "no_usage",
            end => end,
        };
        self.write();
    }

    fn write(&mut self) {
        self.entry.ms = millis(self.began);
        self.log.write(&self.entry);
    }
}

impl Drop for RelayPassing {
    fn drop(&mut self) {
        self.end("hung_up");
    }
}

pub(super) fn millis(began: Instant) -> u64 {
    u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX)
}

pub(super) struct PassingBody {
    pub(super) bytes: Upstream,
    pub(super) passing: RelayPassing,
    /// Permit for one of the client's simultaneous requests. It is held until the reply has ended.
    pub(super) _permit: OwnedSemaphorePermit,
}

impl Body for PassingBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let next = ready!(self.bytes.as_mut().poll_next(cx));
        Poll::Ready(match next {
            Some(Ok(piece)) => {
                self.passing.note(&piece);
                Some(Ok(Frame::data(piece)))
            }
            None => {
                self.passing.meter.finish();
                self.passing.end("complete");
                None
            }
            Some(Err(error)) => {
                self.passing.entry.why = Some(error.message);
                self.passing.end("broken");
                // The error shows the client that the reply broke off.
                Some(Err(io::ErrorKind::ConnectionReset.into()))
            }
        })
    }
}
