use std::env;
use std::process::Command;

use model::provider::anthropic::{Anthropic, AnthropicConfig};
use secrecy::SecretString;

/// Environment variable that is set in the child process of the test, for which no certificate authorities exist.
const WITHOUT: &str = "BAILIWICK_TEST_WITHOUT_AUTHORITIES";

#[test]
fn z7_named_authorities_that_cannot_be_read_are_an_error() {
    if env::var_os(WITHOUT).is_some() {
        let config = AnthropicConfig::new(Some(SecretString::from("sk-ant-0123456789")));
        let Err(error) = Anthropic::new(config) else { panic!("other authorities were taken") };
        let error = error.to_string();
        assert!(error.contains("SSL_CERT_FILE=/dev/null: the path is not a file of certificates"), "{error}");
        return;
    }
    // Changing a variable of this process is not safe, so a child process gets other variables.
    let name = "z7_named_authorities_that_cannot_be_read_are_an_error";
    let output = Command::new(env::current_exe().expect("this program"))
        .args(["--exact", name])
        .env(WITHOUT, "1")
        .env("SSL_CERT_FILE", "/dev/null")
        .env_remove("SSL_CERT_DIR")
        .output()
        .expect("a child");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}
