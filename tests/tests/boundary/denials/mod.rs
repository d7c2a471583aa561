//! Tests reports of denials. Failures that the sandbox did not cause have none. A denial names the layer, the object,
//! and the grant that would permit the operation.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod beside;
mod memory;
mod ordinary;
mod proved;
mod succeeded;
mod told;
