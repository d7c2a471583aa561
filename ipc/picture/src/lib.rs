//! Pictures for models. They are recognised by their content, limited in size, and never decoded.
//!
//! The structure (chunks, segments, blocks) is checked, since a provider rejects the whole conversation if a picture is
//! incomplete. As nothing is decoded, a decompression bomb does no harm.
//!
//! The worker uses [`read`] for files; the supervisor uses [`check`] for pictures from workers, logs and recordings.

#![forbid(unsafe_code)]

mod structure;

use std::sync::Arc;

use ipc::image::{Image, MAX_IMAGE_BYTES, MediaType, TooManyBytes};

/// Maximum width and height in pixels, as model providers limit them.
pub const MAX_IMAGE_SIDE: u32 = 8000;

/// Reason why bytes are no picture for a model. Its text continues a sentence whose subject is the bytes' source.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ImageError {
    #[error("is not a PNG, JPEG, GIF or WebP picture")]
    Unknown,
    #[error("is a damaged {0} picture: it is cut short, or its parts do not fit together")]
    Damaged(MediaType),
    #[error(transparent)]
    TooManyBytes(#[from] TooManyBytes),
    #[error(
        "has {width}×{height} pixels, and each side of a picture must have 1 to {MAX_IMAGE_SIDE} pixels: scale the picture"
    )]
    Size { width: u32, height: u32 },
    #[error("is declared as {}, and is {}", claimed.as_str(), found.as_str())]
    OtherKind { claimed: MediaType, found: MediaType },
    #[error("has {0}×{1} pixels, which differs from the declared size")]
    OtherSize(u32, u32),
}

pub fn media_type(bytes: &[u8]) -> Option<MediaType> {
    match bytes {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some(MediaType::Png),
        [0xff, 0xd8, 0xff, ..] => Some(MediaType::Jpeg),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some(MediaType::Gif),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some(MediaType::Webp),
        _ => None,
    }
}

pub fn read(bytes: impl Into<Arc<[u8]>>) -> Result<Image, ImageError> {
    let bytes = bytes.into();
    let (kind, size) = measure(&bytes)?;
    Ok(Image::new(kind, size, bytes)?)
}

/// Checks that the bytes are a whole picture of the claimed kind and size.
pub fn check(image: &Image) -> Result<(), ImageError> {
    let (width, height) = image.size();
    check_claims(image.bytes(), image.media_type(), (Some(width), Some(height)))
}

/// Checks like [`check`], but a claimed width or height may be missing.
pub fn check_claims(
    bytes: &[u8],
    claimed: MediaType,
    (width, height): (Option<u32>, Option<u32>),
) -> Result<(), ImageError> {
    let (found, size) = measure(bytes)?;
    if found != claimed {
        return Err(ImageError::OtherKind { claimed, found });
    }
    let agrees = |claimed: Option<u32>, found| claimed.is_none_or(|claimed| claimed == found);
    if !(agrees(width, size.0) && agrees(height, size.1)) {
        return Err(ImageError::OtherSize(size.0, size.1));
    }
    Ok(())
}

/// Returns kind, width and height of a picture. Fails if the picture is damaged, too large or of an unknown kind.
fn measure(bytes: &[u8]) -> Result<(MediaType, (u32, u32)), ImageError> {
    let kind = media_type(bytes).ok_or(ImageError::Unknown)?;
    if bytes.len() > MAX_IMAGE_BYTES {
        return Err(TooManyBytes(bytes.len() as u64).into());
    }
    let (width, height) = structure::size(kind, bytes).ok_or(ImageError::Damaged(kind))?;
    let fits = |side| (1..=MAX_IMAGE_SIDE).contains(&side);
    if !(fits(width) && fits(height)) {
        return Err(ImageError::Size { width, height });
    }
    Ok((kind, (width, height)))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    const PICTURES: [(&str, MediaType); 7] = [
        ("shapes.png", MediaType::Png),
        ("shapes.jpg", MediaType::Jpeg),
        ("progressive.jpg", MediaType::Jpeg),
        ("shapes.gif", MediaType::Gif),
        ("lossy.webp", MediaType::Webp),
        ("lossless.webp", MediaType::Webp),
        ("extended.webp", MediaType::Webp),
    ];

    fn picture(name: &str) -> Vec<u8> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/images").join(name);
        std::fs::read(path).unwrap()
    }

    fn png(width: u32, height: u32) -> Vec<u8> {
        let mut bytes = picture("shapes.png");
        bytes[16..20].copy_from_slice(&width.to_be_bytes());
        bytes[20..24].copy_from_slice(&height.to_be_bytes());
        bytes
    }

    #[test]
    fn r10_pictures_are_known_by_their_content() {
        for (name, kind) in PICTURES {
            let image = read(picture(name)).unwrap();
            assert_eq!((image.media_type(), image.size()), (kind, (48, 32)), "{name}");
            assert_eq!(check(&image), Ok(()), "{name}");
        }
        for bytes in [&b""[..], b"\x89PNG", b"GIF90a", b"RIFF\0\0\0\0WAVE", b"<svg xmlns=", b"\xff\xd8"] {
            assert_eq!(read(bytes), Err(ImageError::Unknown), "{bytes:x?}");
        }
    }

    #[test]
    fn a_picture_that_is_cut_anywhere_is_none() {
        for (name, kind) in PICTURES {
            let whole = picture(name);
            for length in 0..whole.len() {
                let cut = &whole[..length];
                assert!(read(cut).is_err(), "{name}: {length} of {}", whole.len());
                let claimed = Image::new(kind, (48, 32), cut).unwrap();
                assert!(check(&claimed).is_err(), "{name}: {length} of {}", whole.len());
            }
            // Bytes after the end of the picture are harmless.
            let more = [&whole[..], b"\0trailing"].concat();
            assert!(read(more).is_ok(), "{name}");
        }
    }

    #[test]
    fn a_picture_beyond_the_limits_says_them() {
        let error = |bytes: Vec<u8>| read(bytes).unwrap_err().to_string();
        assert_eq!(
            error(png(8001, 2)),
            "has 8001×2 pixels, and each side of a picture must have 1 to 8000 pixels: scale the picture"
        );
        assert!(error(png(0, 1)).starts_with("has 0×1 pixels"));
        let large = [picture("shapes.png"), vec![0; MAX_IMAGE_BYTES]].concat();
        assert!(error(large).contains("at most 3932160"));
        // A decompression bomb is a small file that declares many pixels. Within the limits it is accepted, but not
        // decoded.
        assert_eq!(read(png(8000, 8000)).unwrap().size(), (8000, 8000));
        let claimed = Image::new(MediaType::Png, (8001, 2), png(8001, 2)).unwrap();
        assert_eq!(check(&claimed), Err(ImageError::Size { width: 8001, height: 2 }));
    }

    #[test]
    fn r10_claims_that_do_not_hold_are_refused() {
        let claimed = |kind, size| check(&Image::new(kind, size, picture("shapes.png")).unwrap());
        let words = |kind, size| claimed(kind, size).unwrap_err().to_string();
        assert_eq!(words(MediaType::Gif, (48, 32)), "is declared as image/gif, and is image/png");
        assert_eq!(words(MediaType::Png, (49, 32)), "has 48×32 pixels, which differs from the declared size");
        assert_eq!(words(MediaType::Png, (48, 0)), "has 48×32 pixels, which differs from the declared size");
        let unsaid = check_claims(&picture("shapes.png"), MediaType::Png, (None, None));
        assert_eq!(unsaid, Ok(()));
    }
}
