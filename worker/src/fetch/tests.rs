#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::page::{Kind, decoded, kind_of};
use super::{html, page, words};
