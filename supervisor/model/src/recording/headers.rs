//! The headers that a recording contains. They are an allowlist, because vendors may add other headers at any time.

use reqwest::header::HeaderMap;

/// Headers of requests that do not identify the user.
const OF_REQUESTS: [&str; 4] = ["accept", "anthropic-beta", "anthropic-version", "content-type"];

/// Headers of responses by which a client acts, or for which a vendor's support asks.
const OF_RESPONSES: [&str; 6] =
    ["content-type", "request-id", "retry-after", "retry-after-ms", "x-request-id", "x-should-retry"];

/// Headers of a request that must be the same when the recording is compared with another run.
pub(super) const COMPARED: [&str; 2] = ["anthropic-beta", "anthropic-version"];

pub(super) fn of_request(headers: &HeaderMap) -> Vec<(String, String)> {
    kept(headers, &OF_REQUESTS)
}

pub(super) fn of_response(headers: &HeaderMap) -> Vec<(String, String)> {
    kept(headers, &OF_RESPONSES)
}

fn kept(headers: &HeaderMap, names: &[&str]) -> Vec<(String, String)> {
    let of = |name: &&str| {
        let values = headers.get_all(*name).into_iter().filter(|value| !value.is_sensitive());
        let name = (*name).to_owned();
        values
            .filter_map(|value| value.to_str().ok())
            .map(move |value| (name.clone(), value.to_owned()))
            .collect::<Vec<_>>()
    };
    names.iter().flat_map(of).collect()
}
