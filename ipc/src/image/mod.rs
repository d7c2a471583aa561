//! Pictures that a model is shown: known by their content, bounded, and never decoded.
//!
//! A name says nothing, and neither does a media type that somebody claims: what counts are the first bytes. Of the rest only
//! the structure is walked (chunks, segments, blocks), so that a picture that is cut short is found before a provider refuses a
//! whole conversation for it, and a decompression bomb is as harmless as any other bytes.

mod media_type;
mod picture;
mod structure;

pub use media_type::MediaType;
pub use picture::{Image, ImageError, MAX_IMAGE_BYTES, MAX_IMAGE_SIDE};
