//! Pipe ends for tokio. tokio-util splits the stream into frames; tokio-serde and [`codec`](crate::codec) decode them.

use std::marker::PhantomData;
use std::pin::Pin;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use futures_util::{SinkExt, StreamExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_serde::{Deserializer, Serializer, SymmetricallyFramed};
use tokio_util::codec::{Decoder, Encoder, FramedRead, FramedWrite};

use crate::frame::{self, FrameError};
use crate::id::Generation;

const AT_ONCE: usize = 8 << 10;

/// Reader of messages of type `M`.
#[derive(Debug)]
pub struct AsyncIncoming<R, M> {
    frames: SymmetricallyFramed<FramedRead<R, FrameCodec>, M, Sealed<M>>,
}

/// Writer of messages of type `M`.
#[derive(Debug)]
pub struct AsyncOutgoing<W, M> {
    frames: SymmetricallyFramed<FramedWrite<W, FrameCodec>, M, Sealed<M>>,
}

/// Returns the reader and the writer of one process, for frames of one generation.
pub fn async_pair<R, W, In, Out>(
    reader: R,
    writer: W,
    generation: Generation,
) -> (AsyncIncoming<R, In>, AsyncOutgoing<W, Out>)
where
    R: AsyncRead,
    W: AsyncWrite,
{
    (AsyncIncoming::new(reader, generation), AsyncOutgoing::new(writer, generation))
}

impl<R: AsyncRead, M> AsyncIncoming<R, M> {
    /// Returns a reader of the frames of one generation.
    pub fn new(reader: R, generation: Generation) -> Self {
        let frames = FramedRead::new(reader, FrameCodec);
        Self { frames: SymmetricallyFramed::new(frames, Sealed::new(generation)) }
    }
}

impl<R: AsyncRead + Unpin, M: DeserializeOwned + Unpin> AsyncIncoming<R, M> {
    /// Reads the next message; `None` at the end of the stream. Cancel safe.
    pub async fn receive(&mut self) -> Result<Option<M>, FrameError> {
        // Without this, the buffer may have too little free space for the next message, which then needs two reads.
        // Reserving also reuses the space of earlier messages.
        self.frames.get_mut().read_buffer_mut().reserve(AT_ONCE);
        self.frames.next().await.transpose()
    }
}

impl<W: AsyncWrite, M> AsyncOutgoing<W, M> {
    /// Returns a writer of frames of one generation.
    pub fn new(writer: W, generation: Generation) -> Self {
        let frames = FramedWrite::new(writer, FrameCodec);
        Self { frames: SymmetricallyFramed::new(frames, Sealed::new(generation)) }
    }
}

impl<W: AsyncWrite + Unpin, M: Serialize + Unpin> AsyncOutgoing<W, M> {
    /// Writes one message and flushes.
    pub async fn send(&mut self, message: M) -> Result<(), FrameError> {
        self.frames.send(message).await
    }
}

#[derive(Debug)]
struct FrameCodec;

impl Decoder for FrameCodec {
    type Item = BytesMut;
    type Error = FrameError;

    fn decode(&mut self, buffer: &mut BytesMut) -> Result<Option<BytesMut>, FrameError> {
        let Some(length) = buffer.first_chunk::<4>() else {
            return Ok(None);
        };
        let length = frame::check_length(u64::from(u32::from_le_bytes(*length)))?;
        let missing = (4 + length).saturating_sub(buffer.len());
        if missing > 0 {
            buffer.reserve(missing);
            return Ok(None);
        }
        buffer.advance(4);
        Ok(Some(buffer.split_to(length)))
    }

    fn decode_eof(&mut self, buffer: &mut BytesMut) -> Result<Option<BytesMut>, FrameError> {
        match self.decode(buffer)? {
            None if !buffer.is_empty() => Err(FrameError::Truncated),
            frame => Ok(frame),
        }
    }
}

impl Encoder<Bytes> for FrameCodec {
    type Error = FrameError;

    fn encode(&mut self, body: Bytes, buffer: &mut BytesMut) -> Result<(), FrameError> {
        let length = u32::try_from(body.len()).map_err(|_| FrameError::TooLarge(body.len() as u64))?;
        buffer.reserve(4 + body.len());
        buffer.put_u32_le(length);
        buffer.put_slice(&body);
        Ok(())
    }
}

/// Codec of a frame without its length field, in the form that tokio-serde needs.
#[derive(Debug)]
struct Sealed<M> {
    generation: Generation,
    message: PhantomData<fn() -> M>,
}

impl<M> Sealed<M> {
    fn new(generation: Generation) -> Self {
        Self { generation, message: PhantomData }
    }
}

impl<M: Serialize> Serializer<M> for Sealed<M> {
    type Error = FrameError;

    fn serialize(self: Pin<&mut Self>, message: &M) -> Result<Bytes, FrameError> {
        Ok(frame::seal(self.generation, message)?.into())
    }
}

impl<M: DeserializeOwned> Deserializer<M> for Sealed<M> {
    type Error = FrameError;

    fn deserialize(self: Pin<&mut Self>, body: &BytesMut) -> Result<M, FrameError> {
        frame::open(self.generation, body)
    }
}
