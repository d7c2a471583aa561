//! HTTP CONNECT requests (RFC 9110 §9.3.6).

use httparse::{EMPTY_HEADER, Request, Status};

use super::{Protocol, ProxyRequest, Refusal};

const MAX_FIELDS: usize = 64;

#[derive(Debug)]
pub(super) struct Connect;

impl Protocol for Connect {
    fn read(&mut self, bytes: &[u8]) -> ProxyRequest {
        let mut fields = [EMPTY_HEADER; MAX_FIELDS];
        let mut request = Request::new(&mut fields);
        let length = match request.parse(bytes) {
            Ok(Status::Complete(length)) => length,
            Ok(Status::Partial) => return ProxyRequest::Nothing,
            Err(_) => return ProxyRequest::Broken(Refusal::Malformed),
        };
        if request.method != Some("CONNECT") {
            return ProxyRequest::Broken(Refusal::OtherRequest);
        }
        let target = request.path.and_then(|path| path.rsplit_once(':'));
        let port = |port: &str| port.parse().ok().filter(|&port: &u16| port > 0);
        let host = target.and_then(|(name, digits)| Some((name.parse().ok()?, port(digits)?)));
        host.map_or(ProxyRequest::Broken(Refusal::NoName), |(name, port)| {
            ProxyRequest::Request(length, name, port)
        })
    }

    fn answer(&self, refusal: Option<Refusal>) -> Vec<u8> {
        let (status, text) = match refusal {
            None => return b"HTTP/1.1 200 Connection established\r\n\r\n".to_vec(),
            Some(Refusal::NotListed) => ("403 Forbidden", "This host is not on the list of hosts."),
            Some(Refusal::NoName) => ("400 Bad Request", "CONNECT needs the name of a host, and a port."),
            Some(Refusal::OtherRequest) => ("405 Method Not Allowed", "This proxy serves only CONNECT."),
            Some(Refusal::Malformed | Refusal::SignsIn) => {
                ("400 Bad Request", "This is not an HTTP request.")
            }
        };
        let length = text.len() + 1;
        let head = format!("HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\n");
        format!("{head}Connection: close\r\n\r\n{text}\n").into_bytes()
    }
}
