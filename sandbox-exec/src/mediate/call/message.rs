//! Arguments of `sendmsg`: a copied `struct msghdr`, and its data.

use nix::errno::Errno;

use super::memory::{MAX_RANGES, Memory, Range};

// `sizeof(struct msghdr)`, also the offset of `msg_len`, and `sizeof(struct mmsghdr)`, of 64-bit architectures.
pub(in crate::mediate) const HEADER: u64 = 56;
pub(in crate::mediate) const HEADER_WITH_LENGTH: u64 = 64;

/// Maximum number of bytes that one call transfers (`MAX_RW_COUNT`, linux/fs.h).
const MAX_DATA: usize = 0x7fff_f000;

/// Maximum size of control data in bytes: `net.core.optmem_max` of most kernels, enough for 253 descriptors.
const MAX_CONTROL: u64 = 20 << 10;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::mediate) struct Message {
    pub(in crate::mediate) name: Option<(u64, u64)>,
    pub(in crate::mediate) data: Data,
    pub(in crate::mediate) control: Vec<u8>,
}

impl Message {
    /// Reads a `struct msghdr`, with the kernel's checks (`__copy_msghdr` of net/socket.c).
    pub(in crate::mediate) fn read(memory: Memory, start: u64) -> Result<Self, Errno> {
        let header: [u8; 56] = memory.read(start)?;
        let word = |at: usize| {
            header.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |&word| u64::from_ne_bytes(word))
        };
        let name_length = super::address::integer(word(8));
        let name_length = u64::try_from(name_length).map_err(|_| Errno::EINVAL)?.min(128);
        let name = (word(0) != 0 && name_length > 0).then_some((word(0), name_length));
        let data = Data::read(memory, word(16), word(24))?;
        let control = match (word(32), word(40)) {
            (_, MAX_CONTROL..) => return Err(Errno::ENOBUFS),
            (0, _) | (_, 0) => vec![],
            (start, length) => {
                memory.read_vec(start, usize::try_from(length).map_err(|_| Errno::ENOBUFS)?)?
            }
        };
        Ok(Self { name, data, control })
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::mediate) struct Data {
    ranges: Vec<Range>,
    pub(in crate::mediate) left: usize,
}

impl Data {
    /// Returns data that is one memory range. A range that is too long for one call is cut, as by the kernel.
    pub(in crate::mediate) fn of(start: u64, length: u64) -> Self {
        let length = usize::try_from(length).unwrap_or(usize::MAX).min(MAX_DATA);
        Self { ranges: vec![Range { start, length }], left: length }
    }

    /// Reads an array of memory ranges like `iovec_from_user` and `__import_iovec` of the kernel.
    fn read(memory: Memory, start: u64, count: u64) -> Result<Self, Errno> {
        let count =
            usize::try_from(count).ok().filter(|&count| count <= MAX_RANGES).ok_or(Errno::EMSGSIZE)?;
        if count == 0 {
            return Ok(Self::default());
        }
        let bytes = memory.read_vec(start, count * size_of::<[u64; 2]>())?;
        let mut data = Self::default();
        for pair in bytes.as_chunks::<8>().0.as_chunks::<2>().0 {
            let [start, length] = pair.map(u64::from_ne_bytes);
            let length = isize::try_from(length).map_err(|_| Errno::EINVAL)?.cast_unsigned();
            let length = length.min(MAX_DATA - data.left);
            data.ranges.push(Range { start, length });
            data.left += length;
        }
        Ok(data)
    }

    pub(in crate::mediate) fn first(&self, most: usize) -> Vec<Range> {
        let mut room = most;
        let mut first = vec![];
        for range in &self.ranges {
            let length = range.length.min(room);
            if length > 0 {
                first.push(Range { length, ..*range });
            }
            room -= length;
        }
        first
    }

    pub(in crate::mediate) fn advance(&mut self, mut count: usize) {
        self.left = self.left.saturating_sub(count);
        for range in &mut self.ranges {
            let gone = range.length.min(count);
            range.start = range.start.wrapping_add(gone as u64);
            range.length -= gone;
            count -= gone;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own() -> Memory {
        Memory(std::process::id().cast_signed())
    }

    #[test]
    fn data_is_taken_piece_by_piece() {
        let mut data = Data {
            ranges: vec![
                Range { start: 10, length: 3 },
                Range { start: 0, length: 0 },
                Range { start: 100, length: 5 },
            ],
            left: 8,
        };
        assert_eq!(data.first(4), [Range { start: 10, length: 3 }, Range { start: 100, length: 1 }]);
        data.advance(4);
        assert_eq!((data.left, data.first(100)), (4, vec![Range { start: 101, length: 4 }]));
        data.advance(4);
        assert_eq!((data.left, data.first(100)), (0, vec![]));
    }

    #[test]
    fn vectors_are_bounded_as_in_the_kernel() {
        let vector = [[1_u64, 2], [3, u64::MAX]];
        let start = vector.as_ptr().addr() as u64;
        assert_eq!(Data::read(own(), start, 1025), Err(Errno::EMSGSIZE));
        assert_eq!(Data::read(own(), start, u64::MAX), Err(Errno::EMSGSIZE));
        assert_eq!(Data::read(own(), start, 2), Err(Errno::EINVAL));
        assert_eq!(Data::read(own(), 8, 1), Err(Errno::EFAULT));
        assert_eq!(Data::read(own(), start, 1).map(|data| data.left), Ok(2));
        let vast = [[1_u64, 1 << 40], [2, 1 << 40]];
        let data = Data::read(own(), vast.as_ptr().addr() as u64, 2).unwrap();
        assert_eq!(data.left, MAX_DATA);
    }

    #[test]
    fn headers_are_hostile() {
        let mut header = [0_u64; 7];
        let read = |header: &[u64; 7]| Message::read(own(), header.as_ptr().addr() as u64);
        assert_eq!(read(&header), Ok(Message::default()));
        header[0] = 1;
        header[1] = 0xffff_ffff;
        assert_eq!(read(&header), Err(Errno::EINVAL), "a negative length");
        header[1] = 0x7fff_ffff;
        assert_eq!(read(&header).map(|message| message.name), Ok(Some((1, 128))));
        header[5] = u64::MAX;
        assert_eq!(read(&header), Err(Errno::ENOBUFS));
        header[4] = 8;
        header[5] = 16;
        assert_eq!(read(&header), Err(Errno::EFAULT));
    }
}
