//! Messages of the Domain Name System (RFC 1035): one question for a name, and the answer to it.

use std::net::Ipv4Addr;

use ipc::rights::HostName;

use super::names::Resolved;

/// Maximum size of a question in bytes (RFC 1035, 4.2.1).
pub(super) const MAX_QUESTION: usize = 512;

/// Size of a message's header in bytes: its id, flags, and four counts.
const HEADER: usize = 12;
// Maximum sizes in bytes of a name on the wire, and of a label (RFC 1035, 2.3.4).
const MAX_NAME: usize = 255;
const MAX_LABEL: u8 = 63;

// Bits of the third byte: an answer, the operation, an authoritative answer, and recursion desired (RFC 1035, 4.1.1).
const ANSWER: u8 = 0x80;
const OPERATION: u8 = 0x78;
const AUTHORITATIVE: u8 = 0x04;
const RECURSION_DESIRED: u8 = 0x01;
/// Bit in the fourth byte of a message which says that recursion is available.
const RECURSION_AVAILABLE: u8 = 0x80;

// Response codes.
const NO_ERROR: u8 = 0;
const MALFORMED: u8 = 1;
const FAILED: u8 = 2;
const NO_SUCH_NAME: u8 = 3;
const UNKNOWN_OPERATION: u8 = 4;
const REFUSED: u8 = 5;

// Type of an IPv4 address, and the class of the internet.
const A: u16 = 1;
const INTERNET: u16 = 1;
/// Time in seconds for which programs may cache an answer.
const LIFETIME: u32 = 60;
/// Compressed name in an answer: a pointer to the question's name, right after the header (RFC 1035, 4.1.4).
const SAME_NAME: [u8; 2] = [0xc0, 0x0c];

struct HostQuestion {
    /// Name in the question; `None` if no host can have it.
    name: Option<HostName>,
    kind: u16,
    class: u16,
    end: usize,
}

/// Returns the answer to a message. `None` if the message is itself an answer, or too short.
pub(super) fn answer(message: &[u8], resolve: impl FnOnce(&HostName) -> Resolved) -> Option<Vec<u8>> {
    let header: &[u8; HEADER] = message.first_chunk()?;
    if header[2] & ANSWER != 0 {
        return None;
    }
    let asks_once = header[4..6] == [0, 1] && message.len() <= MAX_QUESTION;
    let question = HostQuestion::read(message).filter(|_| asks_once);
    let (code, address) = match &question {
        _ if header[2] & OPERATION != 0 => (UNKNOWN_OPERATION, None),
        None => (MALFORMED, None),
        Some(question) if question.class != INTERNET => (REFUSED, None),
        Some(question) => question.answer(resolve),
    };
    let asked = question.and_then(|question| message.get(HEADER..question.end)).unwrap_or_default();
    Some(written(header, code, asked, address))
}

fn written(header: &[u8; HEADER], code: u8, asked: &[u8], address: Option<Ipv4Addr>) -> Vec<u8> {
    let flags = ANSWER | AUTHORITATIVE | header[2] & (OPERATION | RECURSION_DESIRED);
    let counts = [u8::from(!asked.is_empty()), 0, u8::from(address.is_some()), 0, 0, 0, 0];
    let mut bytes =
        [&[header[0], header[1], flags, RECURSION_AVAILABLE | code, 0][..], &counts, asked].concat();
    if let Some(address) = address {
        bytes.extend(SAME_NAME);
        bytes.extend([A, INTERNET].map(u16::to_be_bytes).concat());
        bytes.extend(LIFETIME.to_be_bytes());
        bytes.extend([&[0, 4][..], &address.octets()].concat());
    }
    bytes
}

impl HostQuestion {
    /// Reads the first question; `None` if it is malformed. Its name is never compressed (RFC 1035, 4.1.4).
    fn read(message: &[u8]) -> Option<Self> {
        let mut labels = vec![];
        let mut at = HEADER;
        loop {
            let length = *message.get(at)?;
            let end = at + 1 + usize::from(length);
            match length {
                0 => break,
                1..=MAX_LABEL if end - HEADER < MAX_NAME => labels.push(message.get(at + 1..end)?),
                _ => return None,
            }
            at = end;
        }
        let number = |at: usize| message.get(at..)?.first_chunk().copied().map(u16::from_be_bytes);
        let (kind, class) = (number(at + 1)?, number(at + 3)?);
        Some(Self { name: name(&labels), kind, class, end: at + 5 })
    }

    /// Returns the response code and the address of the answer. Names have IPv4 addresses alone.
    fn answer(&self, resolve: impl FnOnce(&HostName) -> Resolved) -> (u8, Option<Ipv4Addr>) {
        match self.name.as_ref().map_or(Resolved::Unlisted, resolve) {
            Resolved::Unlisted => (NO_SUCH_NAME, None),
            Resolved::Exhausted => (FAILED, None),
            Resolved::Address(address) => (NO_ERROR, Some(address).filter(|_| self.kind == A)),
        }
    }
}

fn name(labels: &[&[u8]]) -> Option<HostName> {
    if labels.iter().any(|label| label.contains(&b'.')) {
        return None;
    }
    String::from_utf8(labels.join(&b'.')).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ADDRESS: Ipv4Addr = Ipv4Addr::new(198, 19, 0, 1);

    /// Answers a message as if every name except `c.example` was on the list of hosts.
    fn answered(message: &[u8]) -> Option<Vec<u8>> {
        let unlisted = |name: &HostName| name.as_str() == "c.example";
        answer(message, |name| if unlisted(name) { Resolved::Unlisted } else { Resolved::Address(ADDRESS) })
    }

    fn message(flags: u16, questions: u16, name: &[u8], kind: u16, class: u16) -> Vec<u8> {
        let header = [7, flags, questions, 0, 0, 0].map(u16::to_be_bytes).concat();
        [&header, name, &[kind, class].map(u16::to_be_bytes).concat()].concat()
    }

    fn code(message: &[u8]) -> Option<u8> {
        answered(message).map(|answer| answer[3] & 15)
    }

    #[test]
    fn the_bytes_of_an_answer() {
        let asked = message(0x0100, 1, b"\x01A\x07Example\0", 1, 1);
        let expected = b"\0\x07\x85\x80\0\x01\0\x01\0\0\0\0\x01A\x07Example\0\0\x01\0\x01\
                         \xc0\x0c\0\x01\0\x01\0\0\0\x3c\0\x04\xc6\x13\0\x01";
        assert_eq!(answered(&asked).unwrap(), expected);
        let v6 = answered(&message(0, 1, b"\x01a\x07example\0", 28, 1)).unwrap();
        assert_eq!(v6, b"\0\x07\x84\x80\0\x01\0\0\0\0\0\0\x01a\x07example\0\0\x1c\0\x01");
    }

    #[test]
    fn each_message_has_its_code() {
        let a = b"\x01a\x07example\0";
        let with = |name: &[u8]| message(0x0100, 1, name, 1, 1);
        let label = [&[63], &[b'a'; 63][..]].concat();
        // 255 bytes with all lengths, and 256.
        let longest = [&label.repeat(3)[..], &[61], &[b'a'; 61], &[0]].concat();
        let too_long = [&label.repeat(3)[..], &[62], &[b'a'; 62], &[0]].concat();
        for (name, message, expected) in [
            ("listed", with(a), NO_ERROR),
            ("longest", with(&longest), NO_ERROR),
            ("unlisted", with(b"\x01c\x07example\0"), NO_SUCH_NAME),
            ("root", with(b"\0"), NO_SUCH_NAME),
            ("a dot in a label", with(b"\x09a.example\0"), NO_SUCH_NAME),
            ("no text", with(b"\x02\xff\xfe\0"), NO_SUCH_NAME),
            ("an address", with(b"\x03127\x010\x010\x011\0"), NO_SUCH_NAME),
            ("too long", with(&too_long), MALFORMED),
            ("a long label", with(&[&[64], &[b'a'; 64][..], &[0]].concat()), MALFORMED),
            ("a reference", with(b"\xc0\x0c"), MALFORMED),
            ("an end in a name", message(0, 1, b"\x09a", 1, 1), MALFORMED),
            ("no name", message(0, 1, b"", 0x0161, 0x0161)[..14].to_vec(), MALFORMED),
            ("no class", with(a)[..with(a).len() - 1].to_vec(), MALFORMED),
            ("no question", message(0, 0, a, 1, 1), MALFORMED),
            ("two questions", message(0, 2, a, 1, 1), MALFORMED),
            ("too many bytes", [with(a), vec![0; MAX_QUESTION]].concat(), MALFORMED),
            ("an update", message(0x2800, 1, a, 1, 1), UNKNOWN_OPERATION),
            ("another class", message(0, 1, a, 16, 3), REFUSED),
            ("an option", [with(a), b"\0\0\x29\x10\0\0\0\0\0\0\0".to_vec()].concat(), NO_ERROR),
        ] {
            assert_eq!(code(&message), Some(expected), "{name}");
        }
        for dropped in [&b""[..], &[0; HEADER - 1], &message(0x8180, 1, a, 1, 1)] {
            assert_eq!(answered(dropped), None, "{dropped:?}");
        }
        let exhausted = answer(&with(a), |_| Resolved::Exhausted).unwrap();
        assert_eq!((exhausted[3] & 15, exhausted[7]), (FAILED, 0));
    }

    proptest! {
        #[test]
        fn any_bytes_are_answered_or_dropped(
            bytes in prop::collection::vec(any::<u8>(), 0..600),
            is_question in any::<bool>(),
        ) {
            let head = message(0x0100, 1, b"", 0, 0)[..HEADER].to_vec();
            let bytes = if is_question { [head, bytes].concat() } else { bytes };
            if let Some(answer) = answered(&bytes) {
                prop_assert!(answer.len() <= MAX_QUESTION && answer[2] & ANSWER != 0);
                prop_assert_eq!(&answer[..2], &bytes[..2]);
            }
        }

        #[test]
        fn every_name_is_read_as_it_was_written(name in "[a-z][a-z0-9_]{0,20}(\\.[a-z][a-z0-9]{0,9}){0,5}") {
            let wire = name.split('.').map(|label| [&[u8::try_from(label.len()).unwrap()], label.as_bytes()].concat());
            let wire = [wire.collect::<Vec<_>>().concat(), vec![0]].concat();
            let mut asked = None;
            answer(&message(0, 1, &wire, 1, 1), |name| {
                asked = Some(name.to_string());
                Resolved::Unlisted
            });
            prop_assert_eq!(asked, Some(name));
        }
    }
}
