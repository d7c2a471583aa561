mod edits;
mod errors;
mod hostile;
mod properties;
mod reading;

use protocol::plan::Plan;

use super::Document;

const WHOLE: &str = "\
# Make the cache smaller

## Context
The cache grows.

It must not.

## Rights
- write: src
- write: `/srv/a b`
- network: on
- server: docs
- tool: `git__log`

## On failure
replan

## Steps

### 1. Measure it
Run the bench:

```sh
### 2. not a heading
just bench
```

#### Details
> as before

Files:
- `src/cache.rs`
- benches/a.rs

Acceptance:
- `cargo test -p cache`
- ```sh
  cd a
    ./b \"`c`\"
  ```
- The manual mentions it,
  in two lines

### 2. Write it down
";

fn plan(source: &str) -> Plan {
    Document::parse(source).unwrap().plan().clone()
}

fn fault(source: &str) -> String {
    Document::parse(source).unwrap_err().to_string()
}

fn with_step(lines: &str) -> String {
    format!("# T\n## Steps\n### 1. S\n{lines}\n")
}
