//! Pictures from the person: named on the command line or in the terminal UI and read with the person's own access, or
//! attached by a front end.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use ipc::image::{Image, MAX_IMAGE_BYTES, TooManyBytes};
use picture::ImageError;
use protocol::rpc::Attachment;

use crate::process::clipboard;

#[derive(Debug, thiserror::Error)]
pub(crate) enum PictureError {
    #[error("cannot read `{}`: {source}", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    /// The path is a directory, a device or a fifo.
    #[error("`{}` is not a regular file", .0.display())]
    NotAFile(PathBuf),
    /// The file is not a picture that a model accepts.
    #[error("`{}` {error}", path.display())]
    NoPicture { path: PathBuf, error: ImageError },
}

/// Reads a picture. The format comes from the content, not from the file name.
pub(crate) fn read(path: &Path) -> Result<Image, PictureError> {
    let unreadable = |source| PictureError::Unreadable { path: path.to_owned(), source };
    // The opening of a fifo would wait for a writer.
    let opened = File::options().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path);
    let file = opened.map_err(unreadable)?;
    let metadata = file.metadata().map_err(unreadable)?;
    if !metadata.is_file() {
        return Err(PictureError::NotAFile(path.to_owned()));
    }
    let no_picture = |error| PictureError::NoPicture { path: path.to_owned(), error };
    if metadata.len() > MAX_IMAGE_BYTES as u64 {
        return Err(no_picture(TooManyBytes(metadata.len()).into()));
    }
    let mut bytes = Vec::new();
    // The file may grow while it is read.
    file.take(MAX_IMAGE_BYTES as u64 + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    picture::read(bytes).map_err(no_picture)
}

pub(crate) fn in_clipboard(project: &Path) -> Result<Image, String> {
    let hint = "; :image PATH attaches a file";
    let bytes = clipboard::picture(project, MAX_IMAGE_BYTES).map_err(|error| format!("{error}{hint}"))?;
    if bytes.len() > MAX_IMAGE_BYTES {
        return Err(format!("the picture in the clipboard has more than {MAX_IMAGE_BYTES} bytes{hint}"));
    }
    picture::read(bytes).map_err(|error| format!("the content of the clipboard {error}{hint}"))
}

/// Reads a picture that a front end attached. Fails if its format or size differs from the stated one.
pub(crate) fn attached(attachment: Attachment) -> Result<Image, ImageError> {
    let Attachment { media_type, width, height, data } = attachment;
    picture::check_claims(&data, media_type, (width, height))?;
    picture::read(data)
}

#[cfg(test)]
mod tests {
    use ipc::image::MediaType;

    use super::*;

    #[test]
    fn an_attachment_is_what_it_is_said_to_be() {
        let png = &include_bytes!("../../../fixtures/images/shapes.png")[..];
        let read = |media_type, width, data: &[u8]| {
            attached(Attachment { media_type, width, height: None, data: data.into() })
        };
        for width in [None, Some(48)] {
            assert_eq!(read(MediaType::Png, width, png).unwrap().size(), (48, 32));
        }
        for (media_type, width, data, cause) in [
            (MediaType::Png, None, &png[..60], "is a damaged png picture"),
            (MediaType::Gif, None, png, "is declared as image/gif, and is image/png"),
            (MediaType::Png, Some(49), png, "has 48×32 pixels, which differs from the declared size"),
            (MediaType::Png, None, b"<svg/>", "is not a PNG"),
        ] {
            let error = read(media_type, width, data).unwrap_err().to_string();
            assert!(error.contains(cause), "{error}");
        }
    }

    #[test]
    fn only_regular_files_that_are_pictures_are_taken() {
        let temp = tempfile::tempdir().unwrap();
        let place = |name: &str| temp.path().join(name);
        let png = include_bytes!("../../../fixtures/images/shapes.png");
        std::fs::write(place("photo.txt"), png).unwrap();
        assert_eq!(read(&place("photo.txt")).unwrap().size(), (48, 32));
        std::fs::write(place("cut.png"), &png[..100]).unwrap();
        std::fs::write(place("drawing.svg"), "<svg/>").unwrap();
        nix::unistd::mkfifo(&place("fifo"), nix::sys::stat::Mode::S_IRUSR).unwrap();
        File::create(place("large.png")).unwrap().set_len(1 << 40).unwrap();
        for (name, part) in [
            ("cut.png", "is a damaged png picture"),
            ("drawing.svg", "is not a PNG, JPEG, GIF or WebP picture"),
            ("fifo", "is not a regular file"),
            ("", "is not a regular file"),
            ("missing", "cannot read"),
            ("large.png", "has 1099511627776 bytes"),
        ] {
            let error = read(&place(name)).unwrap_err().to_string();
            assert!(error.contains(part), "{name}: {error}");
        }
    }
}
