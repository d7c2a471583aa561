//! Order in which tool calls start: reads run in parallel, writes run one at a time in order of arrival.
//!
//! A write waits for all earlier calls; a read waits for all earlier writes. So each call sees the earlier changes.

use std::collections::{BTreeMap, VecDeque};

use ipc::id::CallId;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    Read,
    Write,
}

/// State in which a call was when it was cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    Queued,
    Running,
    Unknown,
}

#[derive(Debug)]
pub struct Schedule {
    queue: VecDeque<(CallId, Order)>,
    running: BTreeMap<CallId, Order>,
    limit: usize,
}

impl Schedule {
    pub fn new(limit: usize) -> Self {
        Self { queue: VecDeque::new(), running: BTreeMap::new(), limit }
    }

    pub fn arrive(&mut self, call: CallId, order: Order) {
        self.queue.push_back((call, order));
    }

    /// Starts the next call and returns its id; `None` if no call may start now.
    pub fn start(&mut self) -> Option<CallId> {
        let &(call, order) = self.queue.front()?;
        let writing = self.running.values().any(|&order| order == Order::Write);
        let may_start = match order {
            Order::Write => self.running.is_empty(),
            Order::Read => !writing && self.running.len() < self.limit,
        };
        if !may_start {
            return None;
        }
        self.queue.pop_front();
        self.running.insert(call, order);
        Some(call)
    }

    pub fn end(&mut self, call: CallId) {
        self.running.remove(&call);
    }

    /// Removes a call that has not started. Does nothing to a running call.
    pub fn cancel(&mut self, call: CallId) -> Place {
        if self.running.contains_key(&call) {
            return Place::Running;
        }
        match self.queue.iter().position(|&(queued, _)| queued == call) {
            Some(index) => {
                self.queue.remove(index);
                Place::Queued
            }
            None => Place::Unknown,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.queue.is_empty() && self.running.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a schedule with calls 1, 2, 3 … of the kinds in `orders`: `r` reads, `w` writes.
    fn arrived(orders: &str) -> Schedule {
        let mut schedule = Schedule::new(3);
        for (id, order) in (1..).zip(orders.chars()) {
            schedule.arrive(CallId(id), if order == 'w' { Order::Write } else { Order::Read });
        }
        schedule
    }

    fn started(schedule: &mut Schedule) -> Vec<u64> {
        std::iter::from_fn(|| schedule.start()).map(|call| call.0).collect()
    }

    #[test]
    fn what_starts_at_once_is_exactly_this() {
        let table = [
            ("", vec![]),
            ("r", vec![1]),
            ("rr", vec![1, 2]),
            ("rrrr", vec![1, 2, 3]),
            ("w", vec![1]),
            ("ww", vec![1]),
            ("wr", vec![1]),
            ("rw", vec![1]),
            ("rrw", vec![1, 2]),
            ("rwr", vec![1]),
        ];
        for (orders, expected) in table {
            assert_eq!(started(&mut arrived(orders)), expected, "{orders}");
        }
    }

    #[test]
    fn a_write_waits_for_every_earlier_read_and_holds_every_later_one() {
        let mut schedule = arrived("rrwrr");
        assert_eq!(started(&mut schedule), [1, 2]);
        schedule.end(CallId(2));
        assert!(started(&mut schedule).is_empty());
        schedule.end(CallId(1));
        assert_eq!(started(&mut schedule), [3]);
        schedule.end(CallId(3));
        assert_eq!(started(&mut schedule), [4, 5]);
        schedule.end(CallId(4));
        assert!(!schedule.is_empty());
        schedule.end(CallId(5));
        assert!(schedule.is_empty());
    }

    #[test]
    fn a_cancelled_call_in_the_queue_never_starts_and_holds_nobody() {
        let mut schedule = arrived("rwr");
        assert_eq!(started(&mut schedule), [1]);
        assert_eq!(schedule.cancel(CallId(2)), Place::Queued);
        assert_eq!(started(&mut schedule), [3]);
        assert_eq!(schedule.cancel(CallId(2)), Place::Unknown);
        assert_eq!(schedule.cancel(CallId(1)), Place::Running);
    }

    #[test]
    fn a_running_write_stays_in_the_way_until_it_has_ended() {
        let mut schedule = arrived("wr");
        assert_eq!(started(&mut schedule), [1]);
        assert_eq!(schedule.cancel(CallId(1)), Place::Running);
        assert!(started(&mut schedule).is_empty());
        schedule.end(CallId(1));
        assert_eq!(started(&mut schedule), [2]);
    }
}
