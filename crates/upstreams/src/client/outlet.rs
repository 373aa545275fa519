//! Where the pieces of an answer go.

use tokio::sync::mpsc::Sender;

use threadkeep_responses::Piece;

/// The channel for the pieces of one answer, over all attempts.
pub(super) struct Outlet<'a> {
    /// None once nobody reads it.
    channel: Option<&'a Sender<Piece>>,
    /// Whether it has pieces of an attempt that has not succeeded.
    has_pieces: bool,
}

impl<'a> Outlet<'a> {
    pub(super) fn new(channel: Option<&'a Sender<Piece>>) -> Self {
        Self {
            channel,
            has_pieces: false,
        }
    }

    /// Sends pieces, and waits while the channel is full.
    pub(super) async fn send(&mut self, pieces: &mut Vec<Piece>) {
        for piece in pieces.drain(..) {
            let Some(channel) = self.channel else {
                continue;
            };
            // a piece that is dropped while it waits may have been sent
            self.has_pieces = true;
            if channel.send(piece).await.is_err() {
                self.channel = None;
            }
        }
    }

    /// Says that the pieces so far belong to no answer, if there are any.
    pub(super) async fn void(&mut self) {
        if std::mem::take(&mut self.has_pieces) {
            self.send(&mut vec![Piece::Void]).await;
            self.has_pieces = false;
        }
    }
}
