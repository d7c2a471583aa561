//! A picture.

use std::fmt;
use std::sync::Arc;

use base64::Engine;
use base64::display::Base64Display;
use base64::prelude::BASE64_STANDARD;
use serde::de::{Deserialize, Deserializer, Error as _};
use serde::ser::{Serialize, SerializeStruct, Serializer};

use super::MediaType;
use super::structure::size;

/// The most bytes of a picture: 3.75 MiB, which are 5 MiB in base64, the vendors' limit; it fits into one frame.
pub const MAX_IMAGE_BYTES: usize = 15 << 18;

/// The most pixels of a side: the vendors' limit.
pub const MAX_IMAGE_SIDE: u32 = 8000;

/// A picture that a model may be shown. Whoever holds one knows that its bytes are what they say they are: there is no other
/// way to make one, from a worker's message or from a log either. Cheap to clone.
#[derive(Clone, PartialEq, Eq)]
pub struct Image {
    media_type: MediaType,
    width: u32,
    height: u32,
    bytes: Arc<[u8]>,
}

/// Why bytes are no picture for a model; completes a sentence that begins with what was read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ImageError {
    /// They are nothing that we know.
    #[error("is no PNG, JPEG, GIF or WebP picture")]
    Unknown,
    /// They begin as a picture.
    #[error("is a damaged {0} picture: it is cut short, or its parts do not fit together")]
    Damaged(MediaType),
    /// They are too many.
    #[error("has {0} bytes, and a picture may have at most {MAX_IMAGE_BYTES}: make it smaller")]
    TooManyBytes(u64),
    /// It is too large.
    #[error(
        "is {width}×{height} pixels, and a picture may have at most {MAX_IMAGE_SIDE} a side, and at least one: scale it"
    )]
    Size {
        /// Its width.
        width: u32,
        /// Its height.
        height: u32,
    },
}

impl Image {
    /// Takes a whole picture's bytes for what they are.
    pub fn read(bytes: impl Into<Arc<[u8]>>) -> Result<Self, ImageError> {
        let bytes = bytes.into();
        let media_type = MediaType::of(&bytes).ok_or(ImageError::Unknown)?;
        if bytes.len() > MAX_IMAGE_BYTES {
            return Err(ImageError::TooManyBytes(bytes.len() as u64));
        }
        let (width, height) = size(media_type, &bytes).ok_or(ImageError::Damaged(media_type))?;
        let fits = |side| (1..=MAX_IMAGE_SIDE).contains(&side);
        if !(fits(width) && fits(height)) {
            return Err(ImageError::Size { width, height });
        }
        Ok(Self { media_type, width, height, bytes })
    }

    /// What it is.
    pub const fn media_type(&self) -> MediaType {
        self.media_type
    }

    /// Width and height in pixels.
    pub const fn size(&self) -> (u32, u32) {
        (self.width, self.height)
    }

    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Its bytes in base64, with padding.
    pub fn base64(&self) -> impl fmt::Display + '_ {
        Base64Display::new(&self.bytes, &BASE64_STANDARD)
    }
}

/// `[image png 640×480, 12 KB]`: what people and models read of it.
impl fmt::Display for Image {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { media_type, width, height, bytes } = self;
        write!(f, "[image {media_type} {width}×{height}, ")?;
        match bytes.len() {
            few @ ..1_000 => write!(f, "{few} bytes]"),
            some @ ..1_000_000 => write!(f, "{} KB]", some.div_ceil(1_000)),
            many => write!(f, "{}.{} MB]", many / 1_000_000, many % 1_000_000 / 100_000),
        }
    }
}

impl fmt::Debug for Image {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Raw bytes where bytes can be raw; in JSON base64, behind what a reader wants to know of it.
impl Serialize for Image {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if !serializer.is_human_readable() {
            return serializer.serialize_bytes(&self.bytes);
        }
        let mut form = serializer.serialize_struct("Image", 4)?;
        form.serialize_field("media_type", &self.media_type)?;
        form.serialize_field("width", &self.width)?;
        form.serialize_field("height", &self.height)?;
        form.serialize_field("data", &self.base64().to_string())?;
        form.end()
    }
}

impl<'de> Deserialize<'de> for Image {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if deserializer.is_human_readable() {
            return Form::deserialize(deserializer)?.read().map_err(D::Error::custom);
        }
        let bytes = crate::effect::bytes::deserialize(deserializer)?;
        Self::read(bytes).map_err(|error| D::Error::custom(format!("a picture that {error}")))
    }
}

/// A picture in JSON.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Form {
    /// What it is: the data must agree.
    media_type: MediaType,
    /// Its width in pixels; may be left out when it is sent to us.
    #[serde(default)]
    width: Option<u32>,
    /// Its height in pixels; may be left out when it is sent to us.
    #[serde(default)]
    height: Option<u32>,
    /// Its bytes in base64, with padding; at most 3.75 MiB before encoding, and 8000 pixels a side.
    data: String,
}

impl Form {
    fn read(self) -> Result<Image, String> {
        let bytes =
            BASE64_STANDARD.decode(self.data).map_err(|error| format!("a picture's data: {error}"))?;
        let image = Image::read(bytes).map_err(|error| format!("the picture {error}"))?;
        if image.media_type != self.media_type {
            let (claimed, found) = (self.media_type.as_str(), image.media_type.as_str());
            return Err(format!("the picture is said to be {claimed}, and is {found}"));
        }
        let agrees = |claimed: Option<u32>, found| claimed.is_none_or(|claimed| claimed == found);
        if !(agrees(self.width, image.width) && agrees(self.height, image.height)) {
            return Err(format!("the picture is {}×{}, and not as said", image.width, image.height));
        }
        Ok(image)
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Image {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Image".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        Form::json_schema(generator)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::codec;

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
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/images").join(name);
        std::fs::read(path).unwrap()
    }

    /// A PNG of this size whose pixels nobody looks at.
    fn png(width: u32, height: u32) -> Vec<u8> {
        let mut bytes = picture("shapes.png");
        bytes[16..20].copy_from_slice(&width.to_be_bytes());
        bytes[20..24].copy_from_slice(&height.to_be_bytes());
        bytes
    }

    #[test]
    fn r10_pictures_are_known_by_their_content() {
        for (name, kind) in PICTURES {
            let image = Image::read(picture(name)).unwrap();
            assert_eq!((image.media_type(), image.size()), (kind, (48, 32)), "{name}");
        }
        for bytes in [&b""[..], b"\x89PNG", b"GIF90a", b"RIFF\0\0\0\0WAVE", b"<svg xmlns=", b"\xff\xd8"] {
            assert_eq!(Image::read(bytes), Err(ImageError::Unknown), "{bytes:x?}");
        }
    }

    #[test]
    fn a_picture_that_is_cut_anywhere_is_none() {
        for (name, _) in PICTURES {
            let whole = picture(name);
            for length in 0..whole.len() {
                assert!(Image::read(&whole[..length]).is_err(), "{name}: {length} of {}", whole.len());
            }
            // What stands behind the end is no harm.
            let more = [&whole[..], b"\0trailing"].concat();
            assert!(Image::read(more).is_ok(), "{name}");
        }
    }

    #[test]
    fn a_picture_beyond_the_limits_says_them() {
        let error = |bytes: Vec<u8>| Image::read(bytes).unwrap_err().to_string();
        assert_eq!(
            error(png(8001, 2)),
            "is 8001×2 pixels, and a picture may have at most 8000 a side, and at least one: scale it"
        );
        assert!(error(png(0, 1)).starts_with("is 0×1 pixels"));
        let large = [picture("shapes.png"), vec![0; MAX_IMAGE_BYTES]].concat();
        assert!(error(large).contains("and a picture may have at most 3932160: make it smaller"));
        // A bomb is a small file that announces many pixels: within the limits it is sent as it is, and never decoded.
        assert_eq!(Image::read(png(8000, 8000)).unwrap().size(), (8000, 8000));
    }

    #[test]
    fn it_survives_both_wires_and_says_what_it_is() {
        let image = Image::read(picture("shapes.png")).unwrap();
        assert_eq!(image.to_string(), format!("[image png 48×32, {} bytes]", image.bytes().len()));
        let json = serde_json::to_string(&image).unwrap();
        assert!(
            json.starts_with(r#"{"media_type":"image/png","width":48,"height":32,"data":"iVBOR"#),
            "{json}"
        );
        assert_eq!(serde_json::from_str::<Image>(&json).unwrap(), image);
        let wire = codec::encode(&image).unwrap();
        assert_eq!(wire.len(), image.bytes().len() + 8, "raw bytes and their number");
        assert_eq!(codec::decode::<Image>(&wire).unwrap(), image);
    }

    #[test]
    fn the_largest_picture_fits_into_a_frame() {
        let rest = MAX_IMAGE_BYTES - picture("shapes.png").len();
        let image = Image::read([picture("shapes.png"), vec![0; rest]].concat()).unwrap();
        assert!(crate::frame::seal(crate::id::Generation(1), &image).is_ok());
        assert_eq!(image.base64().to_string().len(), 5 << 20);
    }

    #[test]
    fn r10_claims_that_do_not_hold_are_refused() {
        let json = serde_json::to_string(&Image::read(picture("shapes.png")).unwrap()).unwrap();
        for (claim, other, part) in [
            ("image/png", "image/gif", "said to be image/gif, and is image/png"),
            ("image/png", "image/svg+xml", "unknown variant"),
            ("\"width\":48", "\"width\":49", "is 48×32, and not as said"),
            ("iVBOR", "iVB!R", "a picture's data"),
            ("iVBOR", "AAAAA", "is no PNG"),
        ] {
            let error = serde_json::from_str::<Image>(&json.replace(claim, other)).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
        let bytes = codec::encode(&b"not a picture".to_vec()).unwrap();
        assert!(codec::decode::<Image>(&bytes).unwrap_err().to_string().contains("is no PNG"));
    }
}
