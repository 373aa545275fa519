use tokio::sync::mpsc::Sender;

use threadkeep_responses::Piece;

/// Sends the pieces of one answer, across all attempts.
pub(super) struct Outlet<'a> {
    /// `None` once the receiver is dropped.
    channel: Option<&'a Sender<Piece>>,
    /// True if the current attempt has sent pieces. If the attempt fails, a [`Piece::Void`] revokes these pieces.
    has_pieces: bool,
}

impl<'a> Outlet<'a> {
    pub(super) fn new(channel: Option<&'a Sender<Piece>>) -> Self {
        Self {
            channel,
            has_pieces: false,
        }
    }

    pub(super) async fn send(&mut self, pieces: &mut Vec<Piece>) {
        for piece in pieces.drain(..) {
            let Some(channel) = self.channel else {
                continue;
            };
            // set before sending, because a future that is dropped during the send may already have sent the piece
            self.has_pieces = true;
            if channel.send(piece).await.is_err() {
                self.channel = None;
            }
        }
    }

    pub(super) async fn void(&mut self) {
        if std::mem::take(&mut self.has_pieces) {
            self.send(&mut vec![Piece::Void]).await;
            self.has_pieces = false;
        }
    }
}
