use crate::gateway::{in_both, in_full, run};

/// Python function that prints an answer's response code, its number of questions and of answers, and the address.
const DECODE: &str = "def decode(answer):
    number, flags, questions, answers, _, _ = struct.unpack('>6H', answer[:12])
    assert number == 7 and flags >> 15 == 1
    ip = s.inet_ntoa(answer[-4:]) if answers else ''
    return f'{flags & 15} {questions} {answers} {ip}'
";

#[test]
fn each_kind_of_question_has_its_answer() {
    in_both(|place| {
        let script = format!(
            "{DECODE}
print(decode(ask(question('a.example'))))
print(decode(ask(question('localhost'))), decode(ask(question('x.localhost'))))
print(decode(ask(question(s.gethostname()))) if '.' not in s.gethostname() else '0 1 1 127.0.0.1')
for kind in 28, 65, 64, 33, 16, 15, 255: print(decode(ask(question('a.example', kind))))
for text in 'machines', 'example', '1.0.19.198.in-addr.arpa', '': print(decode(ask(question(text))))
print(decode(ask(question('a.example') + b'\\0\\0\\x29\\x10\\0\\0\\0\\0\\0\\0\\0')))"
        );
        let ran = run(place, "a.example", &script);
        let address = "0 1 1 198.19.0.1\n";
        let local = "0 1 1 127.0.0.1 0 1 1 127.0.0.1\n0 1 1 127.0.0.1\n";
        let (nothing, unknown) = ("0 1 0 \n".repeat(7), "3 1 0 \n");
        let expected = [address, local, &nothing, &unknown.repeat(4), address];
        assert_eq!(ran.said, expected.concat());
    });
}

#[test]
fn the_resolver_answers_at_a_second_address_and_on_connections() {
    in_full(|place| {
        let script = format!(
            "{DECODE}
print(decode(ask(question('a.example'), '127.0.0.1')))
def by_stream(to, *messages):
    c = open_to((to, 53))
    c.sendall(b''.join(struct.pack('>H', len(m)) + m for m in messages))
    for m in messages:
        length, = struct.unpack('>H', c.recv(2, s.MSG_WAITALL))
        print(decode(c.recv(length, s.MSG_WAITALL)))
by_stream('198.18.0.2', question('a.example'), question('example'))
by_stream('127.0.0.1', question('a.example'))"
        );
        let ran = run(place, "a.example", &script);
        let address = "0 1 1 198.19.0.1\n";
        assert_eq!(ran.said, [address, address, "3 1 0 \n", address].concat());
    });
}

#[test]
fn malformed_messages_are_refused_or_dropped() {
    in_full(|place| {
        let script = format!(
            "{DECODE}
good = question('a.example')
def head(questions=1, flags=0x100): return struct.pack('>6H', 7, flags, questions, 0, 0, 0)
for bad in [
    head(0), head(2) + good[12:], head(), head() + b'\\x05ab', head() + b'\\xc0\\x0c\\0\\1\\0\\1',
    head() + b'\\x40' + b'a' * 64 + b'\\0\\0\\1\\0\\1', good[:-1], good[:-4], good[:20],
    head() + (b'\\x3f' + b'a' * 63) * 4 + b'\\0\\0\\1\\0\\1', good + b'x' * 500,
]: print(decode(ask(bad))[0], end='')
print()
print(decode(ask(question('a.example', flags=0x2900)))[0], decode(ask(good[:-1] + b'\\3'))[0])
for silent in b'', b'\\0\\7', good[:11], question('a.example', flags=0x8180):
    say(lambda: ask(silent, wait=0.1))
def cut(data):
    c = open_to(('198.18.0.2', 53))
    c.sendall(data)
    return c.recv(1)
say(lambda: cut(b'\\xff\\xff'))
say(lambda: cut(struct.pack('>H', 513)))
say(lambda: cut(b'\\0\\2ab'))
waiting = [open_to(('198.18.0.2', 53)) for _ in range(40)]
before = ticks()
print(decode(ask(good)))
time.sleep(0.5)
print(ticks() - before < 10)
print([c.recv(1) for c in waiting].count(b''))
for _ in range(5000):
    s.socket(type=s.SOCK_DGRAM).sendto(os.urandom(60), ('198.18.0.2', 53))
print(decode(ask(good)))"
        );
        let ran = run(place, "a.example", &script);
        let expected = "11111111111\n4 5\ntimed out\ntimed out\ntimed out\ntimed out\nb''\nb''\nb''\n\
                        0 1 1 198.19.0.1\nTrue\n40\n0 1 1 198.19.0.1\n";
        assert_eq!(ran.said.replace("ECONNRESET", "b''"), expected);
    });
}

#[test]
fn more_names_than_addresses_are_resolved() {
    in_both(|place| {
        let script = "first = s.gethostbyname('first.example')
print(talk((first, 443)))
second = s.gethostbyname('second.example')
for n in range(5000):
    ip = s.gethostbyname(f'n{n}.example')
print(ip, talk((ip, 443)))
print(first == s.gethostbyname('first.example'), second == s.gethostbyname('second.example'))
say(lambda: open_to((second, 443)))";
        let ran = run(place, "*.example", script);
        assert_eq!(ran.said, "b'hi'\n198.19.19.138 b'hi'\nTrue False\nECONNREFUSED\n");
        let names: Vec<_> = ran.arrivals.iter().map(|arrival| arrival.name.as_str()).collect();
        assert_eq!(names, ["first.example", "n4999.example"]);
    });
}
