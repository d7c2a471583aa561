use ipc::image::Image;

/// Maximum number of pictures in a request; a limit of the vendors.
const MAX_IMAGES: usize = 100;

/// Maximum number of pictures in a request if one has a side of more than [`SMALL_SIDE`] pixels.
const FEW_IMAGES: usize = 20;

/// Maximum side of a picture in pixels, in a request with more than [`FEW_IMAGES`].
const SMALL_SIDE: u32 = 2000;

/// Maximum bytes of a request's pictures: 20 MiB in base64. Of the largest request, 32 MB, a third is left for text.
const MAX_BYTES: usize = 15 << 20;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Images {
    count: usize,
    bytes: usize,
    /// Longest side of any picture, in pixels.
    side: u32,
    /// True if the model sees no pictures.
    blind: bool,
}

/// The reason why a picture exceeds the limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Full {
    #[error("this model cannot see pictures; describe the content of the picture, or choose another model")]
    Blind,
    #[error("this conversation has {MAX_IMAGES} pictures, which is the limit; start a new conversation")]
    Count,
    #[error(
        "in a conversation of more than {FEW_IMAGES} pictures, no picture can have a side of more than {SMALL_SIDE} pixels, and one side would have {0}; make the picture smaller, or start a new conversation"
    )]
    Side(u32),
    #[error(
        "the pictures of this conversation would have {0} bytes together, and {MAX_BYTES} is the limit; make this picture smaller, or start a new conversation"
    )]
    Bytes(usize),
}

impl Images {
    /// Returns the counter for a conversation without pictures. `by_model` is true if the model sees pictures.
    pub(super) fn seen(by_model: bool) -> Self {
        Self { blind: !by_model, ..Self::default() }
    }

    /// Counts a picture. If the picture exceeds a limit, it does not count, and an `Err` names the limit.
    pub(super) fn admit(&mut self, image: &Image) -> Result<(), Full> {
        let (width, height) = image.size();
        let sum = Self {
            count: self.count + 1,
            bytes: self.bytes.saturating_add(image.bytes().len()),
            side: self.side.max(width).max(height),
            blind: self.blind,
        };
        if sum.blind {
            return Err(Full::Blind);
        }
        if sum.count > MAX_IMAGES {
            return Err(Full::Count);
        }
        if sum.count > FEW_IMAGES && sum.side > SMALL_SIDE {
            return Err(Full::Side(sum.side));
        }
        if sum.bytes > MAX_BYTES {
            return Err(Full::Bytes(sum.bytes));
        }
        *self = sum;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PNG: &[u8] = include_bytes!("../../../../../fixtures/images/shapes.png");

    fn image(width: u32, bytes: usize) -> Image {
        let mut png = PNG.to_vec();
        png[16..20].copy_from_slice(&width.to_be_bytes());
        png.resize(bytes.max(PNG.len()), 0);
        picture::read(png).expect("a picture")
    }

    #[test]
    fn a_model_that_sees_no_pictures_is_shown_none() {
        assert_eq!(Images::seen(false).admit(&image(1, 0)), Err(Full::Blind));
        assert_eq!(Images::seen(true).admit(&image(1, 0)), Ok(()));
    }

    #[test]
    fn a_conversation_holds_a_hundred_small_pictures() {
        let mut images = Images::default();
        for _ in 0..MAX_IMAGES {
            assert_eq!(images.admit(&image(2000, 0)), Ok(()));
        }
        assert_eq!(images.admit(&image(1, 0)), Err(Full::Count));
    }

    #[test]
    fn many_pictures_are_small_ones() {
        let mut images = Images::default();
        for _ in 0..FEW_IMAGES {
            assert_eq!(images.admit(&image(2000, 0)), Ok(()));
        }
        assert_eq!(images.admit(&image(2001, 0)), Err(Full::Side(2001)));
        assert_eq!(images.admit(&image(2000, 0)), Ok(()));
        let mut large_first = Images::default();
        for _ in 0..FEW_IMAGES {
            assert_eq!(large_first.admit(&image(8000, 0)), Ok(()));
        }
        assert_eq!(large_first.admit(&image(1, 0)), Err(Full::Side(8000)));
    }

    #[test]
    fn all_pictures_together_leave_room_for_words() {
        let mut images = Images::default();
        for _ in 0..5 {
            assert_eq!(images.admit(&image(1, 3 << 20)), Ok(()));
        }
        assert_eq!(images.admit(&image(1, 0)), Err(Full::Bytes((15 << 20) + PNG.len())));
    }
}
