//! Blocking pipe ends, for processes without an async runtime.

use std::io::{self, Read, Write};
use std::marker::PhantomData;
use std::os::fd::{AsFd, BorrowedFd};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::frame::{self, FrameError};
use crate::id::Generation;

/// Reads messages of type `M`.
#[derive(Debug)]
pub struct FrameReader<R, M> {
    reader: R,
    generation: Generation,
    message: PhantomData<fn() -> M>,
}

/// Writes messages of type `M`.
#[derive(Debug)]
pub struct Outgoing<W, M> {
    writer: W,
    generation: Generation,
    message: PhantomData<fn(M)>,
}

impl<R, M> FrameReader<R, M> {
    /// Returns a reader of the frames of one generation.
    pub fn new(reader: R, generation: Generation) -> Self {
        Self { reader, generation, message: PhantomData }
    }
}

impl<R: AsFd, M> AsFd for FrameReader<R, M> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.reader.as_fd()
    }
}

impl<R: Read, M: DeserializeOwned> FrameReader<R, M> {
    /// Reads the next message; `None` at the end of the stream between two frames.
    pub fn receive(&mut self) -> Result<Option<M>, FrameError> {
        let mut length = [0; 4];
        match self.fill(&mut length)? {
            0 => return Ok(None),
            4 => {}
            _ => return Err(FrameError::Truncated),
        }
        let length = frame::check_length(u64::from(u32::from_le_bytes(length)))?;
        let mut body = vec![0; length];
        if self.fill(&mut body)? < length {
            return Err(FrameError::Truncated);
        }
        frame::open(self.generation, &body).map(Some)
    }

    fn fill(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        while filled < buffer.len() {
            match self.reader.read(&mut buffer[filled..]) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(filled)
    }
}

impl<W, M> Outgoing<W, M> {
    /// Returns a writer of frames of one generation.
    pub fn new(writer: W, generation: Generation) -> Self {
        Self { writer, generation, message: PhantomData }
    }
}

impl<W: AsFd, M> AsFd for Outgoing<W, M> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.writer.as_fd()
    }
}

impl<W: Write, M: Serialize> Outgoing<W, M> {
    /// Writes one message and flushes.
    pub fn send(&mut self, message: &M) -> Result<(), FrameError> {
        let body = frame::seal(self.generation, message)?;
        let length = u32::try_from(body.len()).map_err(|_| FrameError::TooLarge(body.len() as u64))?;
        let mut bytes = Vec::with_capacity(4 + body.len());
        bytes.extend_from_slice(&length.to_le_bytes());
        bytes.extend_from_slice(&body);
        self.writer.write_all(&bytes)?;
        Ok(self.writer.flush()?)
    }
}
