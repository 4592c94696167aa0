//! Events for the application.

use std::collections::VecDeque;

use crate::event::Event;

/// Events that the application has not taken yet, and what it waits to be told.
#[derive(Debug, Default)]
pub(super) struct Events {
    queue: VecDeque<Event>,
    /// The application was told that something can be read, and has not read all of it.
    readable_told: bool,
    /// The application was told that the send buffer is full, and waits for room.
    writable_wanted: bool,
    /// The endpoint is to give the association another verification tag.
    tag_wanted: bool,
}

impl Events {
    pub(super) fn push(&mut self, event: Event) {
        self.queue.push_back(event);
    }

    pub(super) fn pop(&mut self) -> Option<Event> {
        self.queue.pop_front()
    }

    /// True if there is nothing to tell the application or the endpoint.
    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty() && !self.tag_wanted
    }

    /// Asks the endpoint, which knows all tags in use, for another verification tag.
    pub(super) fn want_tag(&mut self) {
        self.tag_wanted = true;
    }

    /// True if the association wants another tag, and has not got it yet.
    pub(super) fn take_tag_wanted(&mut self) -> bool {
        std::mem::take(&mut self.tag_wanted)
    }

    /// Tells the application that something can be read, once until all is read.
    pub(super) fn readable(&mut self) {
        if !self.readable_told {
            self.readable_told = true;
            self.push(Event::Readable);
        }
    }

    /// Notes that the application has read all there is.
    pub(super) fn all_is_read(&mut self) {
        self.readable_told = false;
    }

    /// Notes that the send buffer is full: the application is to be told when there is room.
    pub(super) fn want_writable(&mut self) {
        self.writable_wanted = true;
    }

    /// Tells the application that the send buffer has room, if it waits for that.
    pub(super) fn writable(&mut self) {
        if std::mem::take(&mut self.writable_wanted) {
            self.push(Event::Writable);
        }
    }

    /// Puts these events behind those of an association that the peer restarted. To the application
    /// both are one association.
    pub(super) fn succeed(&mut self, old: Events) {
        let new = std::mem::replace(self, old);
        self.push(Event::Restarted);
        let is_connected = |e: &Event| matches!(e, Event::Connected { .. });
        self.queue.extend(new.queue.into_iter().filter(|e| !is_connected(e)));
        self.writable();
        self.all_is_read();
    }
}
