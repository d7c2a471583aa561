use std::io::Write;
use std::time::{Duration, Instant};

use flate2::Compression;
use flate2::write::GzEncoder;
use ipc::fetch::{FetchFailure, FetchOrder, FetchReport, Fetched, MAX_PAGE, MAX_TEXT, Page};
use ipc::id::Generation;
use ipc::page_url::PageUrl;
use ipc::pipe::async_pair;
use ipc::rights::Hosts;
use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex, split};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::page::{Kind, decoded, kind_of};

struct Site {
    port: u16,
    _served: JoinSet<()>,
}

type Serve = fn(String, TcpStream, u16) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send>>;

impl Site {
    async fn new(serve: Serve) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let mut served = JoinSet::new();
        served.spawn(async move {
            loop {
                let (mut client, _) = listener.accept().await.unwrap();
                let mut request = vec![0; 4096];
                let read = client.read(&mut request).await.unwrap_or_default();
                let request = String::from_utf8_lossy(&request[..read]).into_owned();
                tokio::spawn(serve(request, client, port));
            }
        });
        Self { port, _served: served }
    }

    async fn get(&self, path: &str) -> Result<Fetched, FetchFailure> {
        self.reports(path).await.1
    }

    async fn reports(&self, path: &str) -> (Vec<FetchReport>, Result<Fetched, FetchFailure>) {
        let url: PageUrl = format!("http://localhost:{}{path}", self.port).parse().unwrap();
        let order = FetchOrder { hosts: Hosts::from(url.rule()), url, authorities: None };
        let (ours, theirs) = duplex(1 << 16);
        let (reader, writer) = split(theirs);
        let guest = tokio::spawn(super::serve_within(Duration::from_secs(3), reader, writer));
        let (reader, writer) = split(ours);
        let (mut reports, mut orders) = async_pair(reader, writer, Generation(0));
        orders.send(order).await.unwrap();
        let mut before = Vec::new();
        loop {
            match reports.receive().await.unwrap().unwrap() {
                FetchReport::Done(done) => {
                    guest.await.unwrap().unwrap();
                    return (before, done);
                }
                report => before.push(report),
            }
        }
    }
}

fn page(fetched: Result<Fetched, FetchFailure>) -> Page {
    match fetched {
        Ok(Fetched::Page(page)) => page,
        other => panic!("{other:?}"),
    }
}

fn answer(head: &str, body: &[u8]) -> Vec<u8> {
    let head = format!("HTTP/1.1 200 OK\r\n{head}Content-Length: {}\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn by_path(
    request: String,
    mut client: TcpStream,
    port: u16,
) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send>> {
    Box::pin(async move {
        let path = request.split([' ', '?']).nth(1).unwrap_or_default().to_owned();
        let moved = |to: &str| {
            format!("HTTP/1.1 302 Found\r\nLocation: {to}\r\nContent-Length: 0\r\n\r\n").into_bytes()
        };
        let html = "Content-Type: text/html\r\n";
        let bytes = match path.as_str() {
            "/request" => answer("Content-Type: text/plain\r\n", request.as_bytes()),
            "/gzip" => answer("Content-Type: text/plain\r\nContent-Encoding: gzip\r\n", &gzip(b"small")),
            "/bomb" => {
                answer("Content-Type: text/plain\r\nContent-Encoding: gzip\r\n", &gzip(&vec![b'a'; 64 << 20]))
            }
            "/broken" => {
                answer("Content-Type: text/plain\r\nContent-Encoding: gzip\r\n", &gzip(b"small")[..12])
            }
            "/brotli" => answer("Content-Encoding: br\r\n", b"x"),
            "/there" => moved("/here/../request"),
            "/loop" => moved("/loop"),
            "/metadata" => moved("http://169.254.169.254/latest/meta-data/"),
            "/file" => moved("file:///etc/passwd"),
            "/name" => moved("http://evil.example/x"),
            "/port" => moved(&format!("http://localhost:{}/", port.wrapping_add(1).max(1))),
            "/picture" => answer("Content-Type: image/png\r\n", b"\x89PNG\0"),
            "/odd" => answer("Content-Type: text/plain\r\n", b"a\0b\xff\x1b]0;t\x07\xe2\x80\xaec\r\nd"),
            "/deep" => answer(html, &[b"<div>".repeat(100_000), b"<p>end".to_vec()].concat()),
            "/quotes" => answer(html, &[b"<blockquote>".repeat(100_000), b"end".to_vec()].concat()),
            "/tables" => answer(html, &[b"<table><tr><td>".repeat(100_000), b"end".to_vec()].concat()),
            "/styles" => answer(html, &[b"<b><i>".repeat(50_000), b"<p>end".to_vec()].concat()),
            "/long" => answer("Content-Type: text/plain\r\n", &b"a line of text\n".repeat(10_000)),
            "/endless" => {
                b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 10737418240\r\n\r\n".to_vec()
            }
            "/fields" => b"HTTP/1.1 200 OK\r\n".to_vec(),
            "/nothing" => b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n".to_vec(),
            "/other" => b"SSH-2.0-x\r\n".to_vec(),
            _ => b"HTTP/1.1 404 Not Found\r\nContent-Type: text/plain\r\nContent-Length: 4\r\n\r\nnone"
                .to_vec(),
        };
        let more = match path.as_str() {
            "/endless" => b"a line of text\n".repeat(4096),
            "/fields" => b"X-Field: a\r\n".repeat(4096),
            "/nothing" => return tokio::time::sleep(Duration::from_mins(10)).await,
            _ => Vec::new(),
        };
        // The client hangs up when it has seen enough.
        let mut sent = client.write_all(&bytes).await;
        while sent.is_ok() && !more.is_empty() {
            sent = client.write_all(&more).await;
        }
    })
}

#[tokio::test]
async fn a_request_has_no_credentials_and_one_name() {
    let site = Site::new(by_path).await;
    let (reports, done) = site.reports("/request?q=1").await;
    let (host, version) = (format!("localhost:{}", site.port), env!("CARGO_PKG_VERSION"));
    let text = page(done).text;
    assert_eq!(text.lines().count(), 7, "{text}");
    assert!(text.starts_with("GET /request?q=1 HTTP/1.1\n"), "{text}");
    assert!(
        text.contains(&format!("host: {host}\nuser-agent: bailiwick/{version}\naccept: text/html,")),
        "{text}"
    );
    assert!(text.contains("\naccept-encoding: gzip\nconnection: close\n"), "{text}");
    assert!(matches!(reports[0], FetchReport::Ready), "{reports:?}");
    assert!(matches!(reports[1], FetchReport::Connected { port, .. } if port == site.port), "{reports:?}");
    let FetchReport::Carried { sent, received } = reports.last().unwrap() else { panic!("{reports:?}") };
    assert!(*sent > 100 && *received > *sent, "{reports:?}");
}

#[tokio::test]
async fn redirects_are_followed_within_their_host_alone() {
    let site = Site::new(by_path).await;
    let (reports, done) = site.reports("/there").await;
    let there = page(done);
    assert_eq!((there.status, there.url.target()), (200, "/request"));
    let connected = reports.iter().filter(|report| matches!(report, FetchReport::Connected { .. }));
    assert_eq!(connected.count(), 2);
    assert!(matches!(site.get("/loop").await, Err(FetchFailure::Redirects { at }) if at.target() == "/loop"));
    for path in ["/metadata", "/file"] {
        assert!(matches!(site.get(path).await, Err(FetchFailure::Redirect { .. })), "{path}");
    }
    for path in ["/name", "/port"] {
        let (reports, done) = site.reports(path).await;
        assert!(matches!(done, Ok(Fetched::Elsewhere { status: 302, .. })), "{path}: {done:?}");
        let connected = reports.iter().filter(|report| matches!(report, FetchReport::Connected { .. }));
        assert_eq!(connected.count(), 1, "{path}");
    }
}

#[tokio::test]
async fn a_body_is_bounded_before_and_after_it_is_decompressed() {
    let site = Site::new(by_path).await;
    assert_eq!(page(site.get("/gzip").await).text, "small");
    for path in ["/bomb", "/endless"] {
        let (reports, done) = site.reports(path).await;
        let page = page(done);
        assert!(page.is_partial && page.text.len() <= MAX_TEXT, "{path}");
        assert_eq!(page.cut_from, Some(MAX_PAGE as u64), "{path}");
        let FetchReport::Carried { received, .. } = reports.last().unwrap() else { panic!("{reports:?}") };
        assert!(*received < 2 * MAX_PAGE as u64, "{path}: {received}");
    }
    let long = page(site.get("/long").await);
    assert_eq!((long.is_partial, long.cut_from), (false, Some(150_000)));
    assert!(long.text.ends_with("text\n") && long.text.len() > MAX_TEXT - 100, "{}", long.text.len());
    assert!(matches!(site.get("/broken").await, Err(FetchFailure::Http(_))));
    assert_eq!(site.get("/brotli").await, Err(FetchFailure::Coding("br".to_owned())));
}

#[tokio::test]
async fn hosts_that_speak_no_http_fail() {
    let site = Site::new(by_path).await;
    for path in ["/fields", "/other"] {
        assert!(matches!(site.get(path).await, Err(FetchFailure::Http(_))), "{path}");
    }
    let none = page(site.get("/none").await);
    assert_eq!((none.status, none.text.as_str()), (404, "none"));
    let expected = FetchFailure::NoText { status: 200, content_type: "image/png".to_owned(), size: Some(5) };
    assert_eq!(site.get("/picture").await, Err(expected));
}

#[tokio::test]
async fn a_host_that_sends_nothing_more_is_given_up() {
    let site = Site::new(by_path).await;
    assert_eq!(site.get("/nothing").await, Err(FetchFailure::Late));
}

#[tokio::test]
async fn a_page_can_neither_command_a_terminal_nor_hide_text() {
    let site = Site::new(by_path).await;
    let odd = page(site.get("/odd").await).text;
    assert_eq!(odd, "a\\u{0}b\u{fffd}\\u{1b}]0;t\\u{7}\\u{202e}c\nd");
}

#[tokio::test]
async fn html_of_any_depth_becomes_text_or_stays_as_it_is() {
    let site = Site::new(by_path).await;
    for path in ["/deep", "/quotes", "/tables", "/styles"] {
        let began = Instant::now();
        let page = page(site.get(path).await);
        assert!(began.elapsed() < Duration::from_secs(20), "{path}: {:?}", began.elapsed());
        assert!(!page.text.is_empty(), "{path}");
    }
}

#[test]
fn html_keeps_its_links_and_its_order() {
    let text = super::html::render(
        "<title>T</title><script>no</script><h1>Head</h1><p>See <a href=\"/a?b\">this</a> <b>now</b>.</p>\
         <ul><li>one<li>two</ul><pre>a\n  b</pre><table><tr><td>x<td>y</table><img src=p alt=flag>",
    );
    let text = text.unwrap();
    for part in ["# Head\n", "See [this](/a?b) **now**.", "* one\n* two\n", "a\n  b\n", "[picture: flag]"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains("no\n") && !text.contains("\n\n\n"), "{text}");
}

#[test]
fn a_kind_is_what_the_host_says_or_what_the_bytes_are() {
    for (named, body, kind) in [
        ("text/html; charset=utf-8", &b""[..], Kind::Html),
        ("TEXT/HTML", b"", Kind::Html),
        ("application/json", b"", Kind::Text),
        ("application/ld+json; x", b"", Kind::Text),
        ("application/x-yaml", b"", Kind::Text),
        ("text/markdown", b"", Kind::Text),
        ("image/svg+xml", b"", Kind::Text),
        ("image/png", b"text", Kind::Other),
        ("application/pdf", b"%PDF", Kind::Other),
        ("application/xmlish", b"", Kind::Other),
        ("", b" <!DOCTYPE html><p>", Kind::Html),
        ("", b"plain", Kind::Text),
        ("application/octet-stream", b"\0\x01", Kind::Other),
        ("", b"\xff\xfe\xfd", Kind::Other),
    ] {
        assert_eq!(kind_of(named, body), kind, "{named} {body:?}");
    }
}

#[test]
fn a_charset_is_the_hosts_or_the_pages() {
    assert_eq!(decoded("text/plain; charset=iso-8859-1", b"gr\xfc\xdfe", Kind::Text), "grüße");
    assert_eq!(
        decoded("text/html", b"<meta charset=\"shift_jis\">\x83\x65", Kind::Html),
        "<meta charset=\"shift_jis\">テ"
    );
    assert_eq!(decoded("text/plain", b"\xff\xfea\0", Kind::Text), "a");
    assert_eq!(decoded("text/plain; charset=nonsense", "ü\u{0}".as_bytes(), Kind::Text), "ü\0");
    assert_eq!(decoded("text/plain", b"a\xffb", Kind::Text), "a\u{fffd}b");
}
