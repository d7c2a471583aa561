//! A system without certificate authorities, as in many containers.

#![expect(clippy::expect_used, reason = "a test fails by panicking")]

use std::env;
use std::process::Command;

use secrecy::SecretString;
use supervisor::provider::anthropic::{Anthropic, AnthropicConfig};

/// Says to a process of this test that it is the one without authorities.
const WITHOUT: &str = "BAILIWICK_TEST_WITHOUT_AUTHORITIES";

fn notices() -> Vec<String> {
    let config = AnthropicConfig::new(Some(SecretString::from("sk-ant-0123456789")));
    Anthropic::new(config).expect("a provider").notices().to_vec()
}

#[test]
fn without_authorities_of_the_system_the_bundled_ones_are_used_with_a_notice() {
    if env::var_os(WITHOUT).is_some() {
        assert_eq!(
            notices(),
            ["no certificate authorities on this system: the ones that come with bailiwick are used"]
        );
        return;
    }
    // The variables are read once per process, and changing one's own is not safe: a child has other ones.
    let name = "without_authorities_of_the_system_the_bundled_ones_are_used_with_a_notice";
    let output = Command::new(env::current_exe().expect("this program"))
        .args(["--exact", name])
        .env(WITHOUT, "1")
        .env("SSL_CERT_FILE", "/dev/null")
        .env_remove("SSL_CERT_DIR")
        .output()
        .expect("a child");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}
