//! A change stream: events from the store's feed, made into documents, through the client's stages.

use std::sync::Arc;
use std::time::Instant;

use espalier_query::stage::{Pipeline, Run};
use espalier_query::stream::Buffered;
use espalier_query::{Context, Stream};
use espalier_store::{Event, EventKind, Feed, Scope, Store, Watch};
use espalier_value::{Code, DocBuf, Error, RawDoc, Result};

use super::event;
use super::options::{Options, Start};
use super::token::Token;

pub struct ChangeStream {
    options: Options,
    store: Arc<dyn Store>,
    context: Arc<Context>,
    feed: Box<dyn Feed>,
    /// The stages after `$changeStream`.
    pipeline: Option<Pipeline>,
    /// Events up to this place have been seen by whoever resumes.
    seen: Option<Token>,
    current: DocBuf,
    /// Where the current event is.
    at: Token,
    /// What the last event ends: the stream, with an event of its own.
    ending: Option<Event>,
    ended: bool,
    /// When to stop looking, though there may be more.
    until: Option<Instant>,
}

impl ChangeStream {
    pub fn open(
        options: Options,
        pipeline: Option<Pipeline>,
        raw: bool,
        store: Arc<dyn Store>,
        context: Arc<Context>,
    ) -> Result<ChangeStream> {
        let (after, seen) = match options.start {
            Start::Now => (store.durable_time(), None),
            Start::At(time) => (time.saturating_sub(1), None),
            Start::After(token) => (token.stamp().saturating_sub(1), Some(token)),
        };
        let feed = store.changes(Watch { scope: options.scope.clone(), raw, after })?;
        let at = Token::Mark { stamp: after.saturating_add(1) };
        Ok(ChangeStream {
            options,
            store,
            context,
            feed,
            pipeline,
            seen,
            current: DocBuf::new(),
            at,
            ending: None,
            ended: false,
            until: None,
        })
    }

    /// It is over: what it watched is gone.
    pub fn is_ended(&self) -> bool {
        self.ended
    }

    /// Looks for events until then at the longest.
    pub fn look_until(&mut self, until: Instant) {
        self.until = Some(until);
    }

    /// Where to resume to see what comes after the current event.
    pub fn token(&self) -> Token {
        self.at
    }

    /// Where to resume to see what has not been looked at, when there is no current event.
    pub fn mark(&self) -> Token {
        self.at.max(Token::Mark { stamp: self.feed.stamp().saturating_add(1) })
    }

    /// The next event that the stream shows, before the client's stages; `None` if there is none now.
    fn next_document(&mut self) -> Result<Option<DocBuf>> {
        if let Some(event) = self.ending.take() {
            self.ended = true;
            self.at = Token::Event { stamp: event.stamp, index: event.index, invalidate: true };
            return Ok(Some(event::invalidate(&event)));
        }
        while let Some(event) = self.feed.next_event(&self.context.interrupt, self.until)? {
            let at = Token::Event { stamp: event.stamp, index: event.index, invalidate: false };
            if let Some(seen) = self.seen
                && at <= seen
            {
                // Resumed after the event that ends the stream: the end itself is still to be told.
                if at == seen && self.ends(&event) {
                    self.ending = Some(event);
                    return self.next_document();
                }
                continue;
            }
            self.seen = None;
            if !self.shows(&event) {
                continue;
            }
            self.at = at;
            let doc = event::document(&event, &self.options, &*self.store, &self.context)?;
            if self.ends(&event) {
                self.ending = Some(event);
            }
            return Ok(Some(doc));
        }
        Ok(None)
    }

    fn shows(&self, event: &Event) -> bool {
        let always = matches!(
            event.what.kind,
            EventKind::Insert
                | EventKind::Update
                | EventKind::Replace
                | EventKind::Delete
                | EventKind::Drop
                | EventKind::Rename
                | EventKind::DropDatabase
        );
        let ns = &event.what.ns;
        let internal = match self.options.scope {
            Scope::Collection(_) => false,
            Scope::Database(_) => ns.is_system(),
            Scope::Everything => ns.is_system() || matches!(ns.db(), "admin" | "config" | "local"),
        };
        (always || self.options.expanded) && (!internal || self.options.system)
    }

    /// Whether nothing can come after it.
    fn ends(&self, event: &Event) -> bool {
        matches!(
            (&self.options.scope, event.what.kind),
            (Scope::Collection(_), EventKind::Drop | EventKind::Rename) | (Scope::Database(_), EventKind::DropDatabase)
        )
    }

    /// Runs an event through the client's stages; `None` if they drop it.
    fn through_stages(&self, doc: DocBuf) -> Result<Option<DocBuf>> {
        let Some(pipeline) = &self.pipeline else { return Ok(Some(doc)) };
        let id = doc.as_raw().elem("_id").map(|elem| elem.raw().to_vec());
        let run = Run::new(Arc::clone(&self.context));
        let mut stream = pipeline.run_all(Box::new(Buffered::new(vec![doc])), &run)?;
        if !stream.advance()? {
            return Ok(None);
        }
        let out = DocBuf::from_raw(stream.doc());
        if out.as_raw().elem("_id").map(|elem| elem.raw().to_vec()) == id {
            return Ok(Some(out));
        }
        let message = "Encountered an event whose _id field, which contains the resume token, was modified by the \
                       pipeline. Modifying the _id field of an event makes it impossible to resume the stream from that \
                       point. Only transformations that retain the unmodified _id field are allowed.";
        Err(Error::new(Code::ChangeStreamFatalError, message).with_label("NonResumableChangeStreamError"))
    }
}

impl Stream for ChangeStream {
    fn advance(&mut self) -> Result<bool> {
        while !self.ended {
            let Some(doc) = self.next_document()? else { return Ok(false) };
            if let Some(doc) = self.through_stages(doc)? {
                self.current = doc;
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn doc(&self) -> RawDoc<'_> {
        self.current.as_raw()
    }
}
