mod client;
mod incoming;
mod lines;
mod notification;
mod response;
mod schema;

use std::fmt::Debug;

use serde::Serialize;
use serde::de::DeserializeOwned;

fn golden<T: Serialize + DeserializeOwned + PartialEq + Debug>(value: &T, json: &str) {
    assert_eq!(serde_json::to_string(value).unwrap(), json);
    assert_eq!(&serde_json::from_str::<T>(json).unwrap(), value);
    assert!(!json.contains("null"), "{json}");
}
