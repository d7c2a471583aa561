//! Tests of the tools' definitions, of the model's arguments, and of results as text.

mod definitions;
mod dispatch;
mod results;
