//! Pictures for a model, as data. The crate `picture` parses them, not this module.

use std::fmt;
use std::sync::Arc;

use base64::display::Base64Display;
use base64::prelude::BASE64_STANDARD;
use serde::{Deserialize, Serialize};

/// Maximum size of a picture in bytes, which is 5 MiB in base64, the limit of model vendors. One frame can hold it.
pub const MAX_IMAGE_BYTES: usize = 15 << 18;

/// The formats of pictures that models accept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum MediaType {
    /// A PNG picture.
    #[serde(rename = "image/png")]
    Png,
    /// A JPEG picture.
    #[serde(rename = "image/jpeg")]
    Jpeg,
    /// A GIF picture.
    #[serde(rename = "image/gif")]
    Gif,
    /// A WebP picture.
    #[serde(rename = "image/webp")]
    Webp,
}

impl MediaType {
    /// Returns the media type as in HTTP: `image/png`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Png => "image/png",
            Self::Jpeg => "image/jpeg",
            Self::Gif => "image/gif",
            Self::Webp => "image/webp",
        }
    }
}

impl fmt::Display for MediaType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str().strip_prefix("image/").unwrap_or(self.as_str()))
    }
}

/// A picture. Format and size are claims of the process that sent it.
// A clone shares the bytes.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Image {
    /// Media type of the picture.
    media_type: MediaType,
    /// Width in pixels.
    width: u32,
    /// Height in pixels.
    height: u32,
    /// Bytes in base64, with padding: at most 3.75 MiB before encoding, and 8000 pixels a side.
    #[serde(rename = "data", with = "data")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    bytes: Arc<[u8]>,
}

/// Error: a picture has this many bytes, too many. The text continues a sentence whose subject is the picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("has {0} bytes, and a picture can have at most {MAX_IMAGE_BYTES}: make the picture smaller")]
pub struct TooManyBytes(pub u64);

impl Image {
    /// Creates a picture with this format, width and height. Fails if it exceeds [`MAX_IMAGE_BYTES`].
    pub fn new(
        media_type: MediaType,
        (width, height): (u32, u32),
        bytes: impl Into<Arc<[u8]>>,
    ) -> Result<Self, TooManyBytes> {
        let bytes = bounded(bytes.into())?;
        Ok(Self { media_type, width, height, bytes })
    }

    /// Returns the media type.
    pub const fn media_type(&self) -> MediaType {
        self.media_type
    }

    /// Returns width and height in pixels.
    pub const fn size(&self) -> (u32, u32) {
        (self.width, self.height)
    }

    /// Returns the bytes of the picture.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the bytes in base64, with padding.
    pub fn base64(&self) -> impl fmt::Display + '_ {
        Base64Display::new(&self.bytes, &BASE64_STANDARD)
    }
}

fn bounded(bytes: Arc<[u8]>) -> Result<Arc<[u8]>, TooManyBytes> {
    if bytes.len() > MAX_IMAGE_BYTES { Err(TooManyBytes(bytes.len() as u64)) } else { Ok(bytes) }
}

/// Displays a picture as format, width, height and size: `[image png 640×480, 12 KB]`.
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

/// Serialises a picture's bytes: in JSON as base64, in frames as they are. Reading fails above [`MAX_IMAGE_BYTES`].
pub mod data {
    use std::sync::Arc;

    use base64::Engine;
    use base64::prelude::BASE64_STANDARD;
    use serde::de::{Deserialize, Deserializer, Error as _};
    use serde::ser::Serializer;

    /// Writes base64 to a text format such as JSON, raw bytes to a binary one.
    pub fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            serializer.serialize_str(&BASE64_STANDARD.encode(bytes))
        } else {
            serializer.serialize_bytes(bytes)
        }
    }

    /// Reads base64 from a text format such as JSON, raw bytes from a binary one. Fails above `MAX_IMAGE_BYTES`.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Arc<[u8]>, D::Error> {
        let bytes = if deserializer.is_human_readable() {
            let text = String::deserialize(deserializer)?;
            let decoded = BASE64_STANDARD.decode(text);
            decoded.map_err(|error| D::Error::custom(format!("a picture's data: {error}")))?
        } else {
            crate::effect::bytes::deserialize(deserializer)?
        };
        super::bounded(bytes.into()).map_err(|error| D::Error::custom(format!("the picture {error}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec;

    fn image(bytes: Vec<u8>) -> Image {
        Image::new(MediaType::Png, (48, 32), bytes).unwrap()
    }

    #[test]
    fn it_survives_both_wires_and_says_what_it_is() {
        let image = image(vec![7; 192]);
        assert_eq!(image.to_string(), "[image png 48×32, 192 bytes]");
        let json = serde_json::to_string(&image).unwrap();
        assert!(
            json.starts_with(r#"{"media_type":"image/png","width":48,"height":32,"data":"BwcH"#),
            "{json}"
        );
        assert_eq!(serde_json::from_str::<Image>(&json).unwrap(), image);
        let wire = codec::encode(&image).unwrap();
        assert_eq!(wire.len(), 3 * 4 + 8 + 192, "its kind and size, and raw bytes with their number");
        assert_eq!(codec::decode::<Image>(&wire).unwrap(), image);
    }

    #[test]
    fn the_largest_picture_fits_into_a_frame() {
        let image = image(vec![0; MAX_IMAGE_BYTES]);
        assert!(crate::frame::seal(crate::id::Generation(1), &image).is_ok());
        assert_eq!(image.base64().to_string().len(), 5 << 20);
    }

    #[test]
    fn a_larger_one_is_none() {
        let bytes = vec![0; MAX_IMAGE_BYTES + 1];
        let error = Image::new(MediaType::Png, (48, 32), bytes.clone()).unwrap_err();
        assert_eq!(error, TooManyBytes(3_932_161));
        let large = Image { bytes: bytes.into(), ..image(vec![]) };
        for error in [
            codec::decode::<Image>(&codec::encode(&large).unwrap()).unwrap_err().to_string(),
            serde_json::from_str::<Image>(&serde_json::to_string(&large).unwrap()).unwrap_err().to_string(),
        ] {
            assert!(error.contains("the picture has 3932161 bytes"), "{error}");
        }
    }

    #[test]
    fn no_image_comes_of_what_is_not_its_form() {
        let json = serde_json::to_string(&image(b"\x89PNG".to_vec())).unwrap();
        for (part, other, cause) in [
            ("image/png", "image/svg+xml", "unknown variant"),
            ("iVBO", "iV!O", "a picture's data"),
            (r#""width":48,"#, "", "missing field `width`"),
            (r#""width""#, r#""wide""#, "unknown field `wide`"),
        ] {
            let error = serde_json::from_str::<Image>(&json.replace(part, other)).unwrap_err().to_string();
            assert!(error.contains(cause), "{error}");
        }
    }
}
