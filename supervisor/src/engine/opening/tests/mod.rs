mod agent;
mod large_logs;
