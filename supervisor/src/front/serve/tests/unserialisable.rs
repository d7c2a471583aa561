use serde::ser::{Error, Serialize, Serializer};

use super::Client;

struct Unserialisable;

impl Serialize for Unserialisable {
    fn serialize<S: Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        Err(S::Error::custom("a key is no text"))
    }
}

#[tokio::test]
async fn a_result_that_cannot_be_serialised_is_an_error_of_its_request() {
    let mut client = Client::start_after(|server| server.grant(&"q".into(), &Unserialisable));
    let response = client.read().await;
    assert_eq!(response["id"], "q", "{response}");
    assert_eq!(response["error"]["data"]["word"], "internal_error", "{response}");
    assert!(response["error"]["message"].as_str().unwrap().contains("a key is no text"), "{response}");
    assert_eq!(response.get("result"), None);
}
