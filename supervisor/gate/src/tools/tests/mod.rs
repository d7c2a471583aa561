//! What the model is told of the tools, what it may write, and what it reads back.

mod definitions;
mod dispatch;
mod results;
