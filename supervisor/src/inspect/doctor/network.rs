//! Checks of the connection to the model: proxies, certificate authorities, and on demand the API.

use std::time::{Duration, SystemTime};

use model::provider::probe::{self, ProbeAnswer, ProbeError};
use model::provider::proxy::{VARIABLES, address_of};

use super::{CheckState, DoctorCheck, clock};

/// Longest time to wait for an answer of the API.
const PATIENCE: Duration = Duration::from_secs(8);

/// Checks the proxies in the environment. Does not show their passwords.
pub(super) fn proxies() -> DoctorCheck {
    let set: Vec<_> = VARIABLES.iter().filter_map(|name| Some((*name, std::env::var_os(name)?))).collect();
    let set: Vec<_> = set.iter().map(|(name, value)| (*name, value.to_string_lossy())).collect();
    let set: Vec<_> = set
        .iter()
        .filter(|(_, value)| !value.is_empty())
        .map(|(name, value)| (*name, value.as_ref()))
        .collect();
    of_proxies(&set)
}

fn of_proxies(set: &[(&str, &str)]) -> DoctorCheck {
    if set.is_empty() {
        return DoctorCheck::new("proxy", CheckState::Ok, "none");
    }
    let told: Vec<_> =
        set.iter().map(|(name, value)| format!("{name}={}", without_password(value))).collect();
    let told = told.join(", ");
    match set.iter().find(|(_, value)| address_of(value).is_none()) {
        None => DoctorCheck::new("proxy", CheckState::Ok, told),
        Some((name, _)) => DoctorCheck::new("proxy", CheckState::Warn, told)
            .remedy(format!("set {name} to something like http://proxy.example:3128, or unset it")),
    }
}

fn without_password(value: &str) -> String {
    let Some(url) = address_of(value) else { return "(no address)".to_owned() };
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    format!("{}://{}{port}", url.scheme(), url.host_str().unwrap_or_default())
}

/// Checks whether the system has certificate authorities; otherwise Bailiwick uses its own list.
pub(super) fn authorities() -> DoctorCheck {
    match probe::has_system_authorities() {
        Ok(true) => DoctorCheck::new("ca certs", CheckState::Ok, "the system's"),
        Ok(false) => {
            DoctorCheck::new("ca certs", CheckState::Ok, "none on this system: Bailiwick uses its own")
        }
        Err(error) => DoctorCheck::new("ca certs", CheckState::Warn, error.to_string())
            .remedy("reinstall ca-certificates"),
    }
}

/// Checks that the API answers a request without a key.
pub(super) async fn api(base_url: &str) -> DoctorCheck {
    match probe::ask(base_url, PATIENCE).await {
        Ok(answer) => answered(&answer, SystemTime::now()),
        Err(error) => {
            let remedy = remedy(&error);
            DoctorCheck::new("api", CheckState::Warn, error.to_string()).remedy(remedy)
        }
    }
}

fn answered(ProbeAnswer { host, status, date }: &ProbeAnswer, now: SystemTime) -> DoctorCheck {
    let text = format!("{host} answers ({status} without a key)");
    match date.and_then(|date| clock::skew(now, date)) {
        Some(skew) => {
            DoctorCheck::new("api", CheckState::Warn, format!("{text}; {skew}")).remedy("set the clock")
        }
        None if *status >= 500 => {
            let text = format!("{text}: the server answers with an error");
            DoctorCheck::new("api", CheckState::Warn, text).remedy("try again later, or check the base URL")
        }
        None => DoctorCheck::new("api", CheckState::Ok, text),
    }
}

fn remedy(error: &ProbeError) -> String {
    let known = match error {
        ProbeError::Provider(error) => error.hint.clone(),
        ProbeError::Config(_) | ProbeError::Late { .. } => None,
    };
    known.unwrap_or_else(|| "check the network, the proxy and the base URL".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::provider::ProviderError;

    #[test]
    fn a_proxys_password_is_never_told() {
        let check = of_proxies(&[
            ("HTTPS_PROXY", "http://me:hunter2@proxy.example:3128"),
            ("http_proxy", "other:80"),
        ]);
        assert_eq!(check.found, "HTTPS_PROXY=http://proxy.example:3128, http_proxy=http://other");
        assert_eq!(check.state, CheckState::Ok);
        let wrong = of_proxies(&[("ALL_PROXY", "http://:hunter2@")]);
        assert_eq!((wrong.state, wrong.found.as_str()), (CheckState::Warn, "ALL_PROXY=(no address)"));
        assert!(wrong.remedy.unwrap_or_default().starts_with("set ALL_PROXY to "));
        assert_eq!(of_proxies(&[]).found, "none");
    }

    #[test]
    fn an_answer_tells_the_time_too() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_790_000_000);
        let answer = |date| ProbeAnswer { host: "api.example".to_owned(), status: 401, date };
        assert_eq!(answered(&answer(Some(now)), now).found, "api.example answers (401 without a key)");
        let off = answered(&answer(Some(now - Duration::from_hours(1))), now);
        assert_eq!(
            (off.state, off.found.as_str()),
            (
                CheckState::Warn,
                "api.example answers (401 without a key); the clock is 3600 s ahead of the server's"
            )
        );
    }

    #[test]
    fn an_error_is_told_with_its_own_remedy_or_a_general_one() {
        let error = ProviderError::new("connection", "x:80 refused the connection");
        let general = remedy(&ProbeError::Provider(error.clone()));
        assert_eq!(general, "check the network, the proxy and the base URL");
        assert_eq!(remedy(&ProbeError::Provider(error.hint("start it"))), "start it");
    }
}
