mod definitions;
mod dispatch;
mod results;
