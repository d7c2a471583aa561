//! Checks that a picture is complete, from its first byte to its end mark, and reads its width and height.

use ipc::image::MediaType;

/// Returns width and height. `None` if the picture is incomplete or of another kind.
pub(super) fn size(kind: MediaType, bytes: &[u8]) -> Option<(u32, u32)> {
    match kind {
        MediaType::Png => png(bytes),
        MediaType::Jpeg => jpeg(bytes),
        MediaType::Gif => gif(bytes),
        MediaType::Webp => webp(bytes),
    }
}

/// Returns width and height of a complete PNG: all chunks from `IHDR` to `IEND`, with data between them (PNG, §5).
fn png(bytes: &[u8]) -> Option<(u32, u32)> {
    const SIGNATURE: usize = 8;
    const AROUND_DATA: usize = 12;
    let (mut at, mut size, mut has_data) = (SIGNATURE, None, false);
    loop {
        let length = usize::try_from(be32(bytes, at)?).ok()?;
        let kind = bytes.get(at + 4..at + 8)?;
        let end = at.checked_add(length)?.checked_add(AROUND_DATA)?;
        let data = bytes.get(at + 8..end - 4)?;
        bytes.get(end - 1)?;
        match kind {
            b"IHDR" if size.is_none() => size = Some((be32(data, 0)?, be32(data, 4)?)),
            b"IDAT" => has_data = true,
            b"IEND" => return size.filter(|_| has_data),
            // The header is the first chunk.
            _ => drop(size?),
        }
        at = end;
    }
}

/// Returns width and height of a complete JPEG: segments with a frame header, a scan, and an end-of-image mark (ITU
/// T.81, annex B).
fn jpeg(bytes: &[u8]) -> Option<(u32, u32)> {
    const END: [u8; 2] = [0xff, 0xd9];
    let (mut at, mut size) = (2, None);
    loop {
        let marker = *bytes.get(at + 1).filter(|_| bytes.get(at) == Some(&0xff))?;
        match marker {
            // Fill bytes, and marks without a segment.
            0xff => at += 1,
            0x01 | 0xd0..=0xd7 => at += 2,
            // The entropy-coded rest is not parsed; only the end-of-image mark is searched.
            0xda => {
                let scan = bytes.get(at..)?;
                return size.filter(|_| scan.windows(2).any(|pair| pair == END));
            }
            0xd8 | 0xd9 => return None,
            _ => {
                let length = usize::from(be16(bytes, at + 2)?);
                // The length of a segment includes its length field.
                let segment = bytes.get(at + 4..at + 2 + length.max(2))?;
                if is_frame_header(marker) {
                    size = Some((u32::from(be16(segment, 3)?), u32::from(be16(segment, 1)?)));
                }
                at += 2 + length.max(2);
            }
        }
    }
}

/// True for the JPEG markers SOF0 to SOF15, but not for the tables (DHT, DAC) and the extension (JPG) among them.
const fn is_frame_header(marker: u8) -> bool {
    matches!(marker, 0xc0..=0xcf) && !matches!(marker, 0xc4 | 0xc8 | 0xcc)
}

/// Returns width and height of the logical screen of a complete GIF: blocks up to the trailer, with at least one
/// picture (`GIF89a` specification).
fn gif(bytes: &[u8]) -> Option<(u32, u32)> {
    const HEADER: usize = 13;
    let size = (u32::from(le16(bytes, 6)?), u32::from(le16(bytes, 8)?));
    let mut at = HEADER + colour_table(*bytes.get(10)?);
    let mut has_picture = false;
    loop {
        match *bytes.get(at)? {
            // An extension: its label, then data.
            0x21 => at = past_sub_blocks(bytes, at + 2)?,
            // A picture: its descriptor, perhaps colours, the code size, then data.
            0x2c => {
                let colours = colour_table(*bytes.get(at + 9)?);
                at = past_sub_blocks(bytes, at + 11 + colours)?;
                has_picture = true;
            }
            0x3b => return has_picture.then_some(size),
            _ => return None,
        }
    }
}

const fn colour_table(flags: u8) -> usize {
    if flags & 0x80 == 0 { 0 } else { 3 << ((flags & 7) + 1) }
}

/// Returns the position after a sequence of a GIF's sub-blocks, which ends with an empty one.
fn past_sub_blocks(bytes: &[u8], mut at: usize) -> Option<usize> {
    loop {
        match usize::from(*bytes.get(at)?) {
            0 => return Some(at + 1),
            length => at += 1 + length,
        }
    }
}

/// Returns width and height of a WebP with a complete RIFF container. They are in the first chunk (WebP container
/// specification; RFC 6386 §9.1 if lossy, §3 of the lossless bitstream's specification otherwise).
fn webp(bytes: &[u8]) -> Option<(u32, u32)> {
    const BEFORE_COUNT: usize = 8;
    const FIRST_CHUNK: usize = 12;
    let whole = usize::try_from(le32(bytes, 4)?).ok()?.checked_add(BEFORE_COUNT)?;
    let chunks = bytes.get(FIRST_CHUNK..whole)?;
    let length = usize::try_from(le32(chunks, 4)?).ok()?;
    let data = chunks.get(8..length.checked_add(8)?)?;
    match chunks.get(..4)? {
        b"VP8X" => Some((le24(data, 4)?.checked_add(1)?, le24(data, 7)?.checked_add(1)?)),
        b"VP8 " if data.get(3..6)? == [0x9d, 0x01, 0x2a] => {
            Some((u32::from(le16(data, 6)? & 0x3fff), u32::from(le16(data, 8)? & 0x3fff)))
        }
        b"VP8L" if data.first()? == &0x2f => {
            let bits = le32(data, 1)?;
            Some(((bits & 0x3fff) + 1, (bits >> 14 & 0x3fff) + 1))
        }
        _ => None,
    }
}

fn array<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    array(bytes, at).map(u16::from_be_bytes)
}

fn be32(bytes: &[u8], at: usize) -> Option<u32> {
    array(bytes, at).map(u32::from_be_bytes)
}

fn le16(bytes: &[u8], at: usize) -> Option<u16> {
    array(bytes, at).map(u16::from_le_bytes)
}

fn le24(bytes: &[u8], at: usize) -> Option<u32> {
    array::<3>(bytes, at).map(|[low, middle, high]| u32::from_le_bytes([low, middle, high, 0]))
}

fn le32(bytes: &[u8], at: usize) -> Option<u32> {
    array(bytes, at).map(u32::from_le_bytes)
}
