//! The page of error codes, generated from the codes. `BLESS=1 cargo test -p supervisor --lib errors_page` writes it.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use protocol::error_code::ErrorCode;

const PAGE: &str = "../docs/errors.md";

const HEAD: &str = "# Errors

An error is one line with its cause, and one with the next step. Errors that a newcomer meets have a code, which stays the same from version to
version. The code is in brackets at the end of the first line:

```text
bailiwick: no API key found [no-key]
  hint: set ANTHROPIC_API_KEY, or put the key into ~/.config/bailiwick/anthropic.key (mode 0600). No key yet? Try: bailiwick demo
```

Programs find the code as `error` in the event `result` (`exec --output json` and `stream-json`) and in the `data` of an error of `serve`. In the terminal UI the
same line is in the notice. *Exit status* is that of a command that ends with the error; with `–` the command continues.

A project without git, or a huge one, is not an error: sessions, patches and rewinds work there too.

This page is made from the program's own table, and compared with it by a test.

| code | cause | what to do | exit status |
| --- | --- | --- | --- |
";

#[test]
fn the_page_has_every_code_with_its_cause_step_and_status() {
    let mut page = HEAD.to_owned();
    for code in ErrorCode::ALL {
        let exit = code.exit().map_or_else(|| "–".to_owned(), |exit| exit.to_string());
        writeln!(page, "| `{code}` | {} | {} | {exit} |", code.cause(), code.next()).unwrap();
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(PAGE);
    if std::env::var_os("BLESS").is_some() {
        fs::write(&path, &page).unwrap();
    }
    assert!(fs::read_to_string(path).unwrap() == page, "docs/errors.md differs: run this test with BLESS=1");
}
