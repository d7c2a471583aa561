#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod support;

use ipc::image::{MAX_IMAGE_BYTES, MediaType};
use ipc::tool::{ReadFile, ToolCall, ToolErrorKind, ToolOutput};
use support::{Worker, read_file};

const PNG: &[u8] = include_bytes!("../../fixtures/images/shapes.png");
const JPEG: &[u8] = include_bytes!("../../fixtures/images/shapes.jpg");

#[test]
fn a_picture_is_known_by_its_content_whatever_it_is_called() {
    let mut worker = Worker::new();
    worker.write("shapes.png", PNG);
    worker.write("notes.txt", PNG);
    worker.write("shapes.gif", JPEG);
    for (name, kind, bytes) in [
        ("shapes.png", MediaType::Png, PNG),
        ("notes.txt", MediaType::Png, PNG),
        ("shapes.gif", MediaType::Jpeg, JPEG),
    ] {
        let ToolOutput::Image(image) = worker.run(read_file(name)).unwrap() else { panic!("{name}") };
        assert_eq!((image.media_type(), image.size(), image.bytes()), (kind, (48, 32), bytes), "{name}");
    }
    // A range of lines means nothing in a picture.
    let call = ReadFile { path: "shapes.png".into(), offset: Some(5), limit: Some(1), inside: false };
    assert!(matches!(worker.run(ToolCall::ReadFile(call)), Ok(ToolOutput::Image(_))));
}

#[test]
fn a_name_makes_no_picture() {
    let mut worker = Worker::new();
    worker.write("text.png", "only words\n");
    worker.write("drawing.svg", "<svg xmlns=\"http://www.w3.org/2000/svg\"/>\n");
    assert_eq!(worker.read("text.png").unwrap().text, "only words\n");
    assert!(worker.read("drawing.svg").unwrap().text.starts_with("<svg"));
}

#[test]
fn what_cannot_be_shown_says_why_and_what_to_do() {
    let mut worker = Worker::new();
    worker.write("cut.png", &PNG[..PNG.len() - 1]);
    let wide = [&PNG[..16], &9000u32.to_be_bytes(), &PNG[20..]].concat();
    worker.write("wide.png", wide);
    worker.write("large.png", PNG);
    let large = std::fs::File::options().write(true).open(worker.project.join("large.png")).unwrap();
    large.set_len(1 << 40).unwrap();
    for (name, part) in [
        ("cut.png", "is a damaged png picture"),
        ("wide.png", "has 9000×32 pixels, and each side of a picture must have 1 to 8000 pixels"),
        ("large.png", "has 1099511627776 bytes, and a picture can have at most 3932160"),
    ] {
        let error = worker.run(read_file(name)).unwrap_err();
        assert_eq!(error.kind, ToolErrorKind::Unreadable);
        assert!(error.message.contains(part) && error.message.contains("shell_exec"), "{error}");
    }
}

#[test]
fn the_largest_picture_comes_through() {
    let mut worker = Worker::new();
    let mut bytes = PNG.to_vec();
    bytes.resize(MAX_IMAGE_BYTES, 0);
    worker.write("largest.png", &bytes);
    let ToolOutput::Image(image) = worker.run(read_file("largest.png")).unwrap() else {
        panic!("no picture")
    };
    assert!(image.bytes() == bytes);
}
