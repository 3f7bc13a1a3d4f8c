//! Applies a tree of operators to a raw document in one pass: what no path leads to is copied in whole runs, what a
//! path leads to is handed to its operator, what is missing is created at the end.

use espalier_value::{Code, Elem, Error, IndexName, RawArray, RawDoc, Result, Type, Value, ValueRef, push_value};

use super::array_filters::ArrayFilters;
use super::branches::{Branches, Choices, Nodes, Seen, View, conflict};
use super::describe::{Log, What};
use super::operator::{Blocked, Outcome, Slot};
use super::trail::{Step, Trail};
use super::tree::{Leaf, Node};
use super::{Apply, nesting, path};

/// How many nulls an update may put between the end of an array and the element it sets.
const BACKFILL_MAX: usize = 1_500_000;

/// Where a walk gives up: far above what may be stored (the caller knows that limit), far below what `a.$[]` with a long
/// value on a long array would take.
const RESULT_BYTES_MAX: usize = 64 << 20;

/// Beyond this many branches, looking each one up would make an error costly.
const TREE_ORDER_MAX: usize = 32;

pub(super) struct Walk<'n, 'a> {
    pub how: &'a Apply<'a>,
    pub filters: &'n ArrayFilters,
    /// The name that `$` stands for.
    pub position: Option<&'n str>,
    /// The document before the update.
    pub root: RawDoc<'a>,
    pub out: Vec<u8>,
    pub changed: bool,
    /// Visits the branches in the tree's order and not in the document's: slower, but meets the errors in the order
    /// in which MongoDB does.
    pub in_tree_order: bool,
    /// What was changed, if anybody wants to know.
    pub log: Option<Log>,
}

/// Where a new element is appended.
enum Parent<'l> {
    Document,
    /// The new element's index, and the number of elements so far.
    Array(usize, &'l mut usize),
}

impl Parent<'_> {
    fn index(&self) -> Option<usize> {
        match self {
            Parent::Document => None,
            Parent::Array(index, _) => Some(*index),
        }
    }
}

impl<'n: 'a, 'a> Walk<'n, 'a> {
    /// Writes the updated document.
    pub fn run(&mut self, tree: &'n Node) -> Result<()> {
        let done = self.pass(tree);
        if let (Err(error), false) = (&done, self.in_tree_order) {
            // Of several things that are wrong, the client hears of the one that MongoDB would name.
            self.in_tree_order = true;
            self.out.clear();
            self.log = None;
            return self.pass(tree).and(Err(error.clone()));
        }
        done
    }

    fn pass(&mut self, tree: &'n Node) -> Result<()> {
        let start = self.open();
        if let View::Fields(branches) = Nodes::One(tree).view(self.position, &Trail::ROOT)? {
            self.document(&branches, self.root, &Trail::ROOT)?;
        }
        self.close(start);
        Ok(())
    }

    fn document(&mut self, branches: &Branches<'n>, doc: RawDoc<'a>, trail: &Trail<'_>) -> Result<()> {
        if self.in_tree_order && branches.len() <= TREE_ORDER_MAX {
            for at in 0..branches.len() {
                let name = branches.name(at);
                match doc.elem(name) {
                    Some(elem) => self.existing(branches.nodes(at), elem, &trail.then(Step::Name(name)), false)?,
                    None => self.create(branches.nodes(at), name, Parent::Document, trail)?,
                }
            }
            return Ok(());
        }
        let mut seen = Seen::new(branches.len());
        let mut elems = doc.iter();
        let mut run = elems.rest();
        while seen.pending() > 0 {
            let rest = elems.rest();
            let Some(elem) = elems.next() else { break };
            // A second field of the same name is left alone.
            if let Some(at) = branches.find(elem.name_bytes()).filter(|&at| seen.insert(at)) {
                self.out.extend_from_slice(&run[..run.len() - rest.len()]);
                self.existing(branches.nodes(at), elem, &trail.then(Step::Name(branches.name(at))), false)?;
                run = elems.rest();
            }
        }
        self.out.extend_from_slice(run);
        for at in 0..branches.len() {
            if !seen.contains(at) {
                self.create(branches.nodes(at), branches.name(at), Parent::Document, trail)?;
            }
        }
        Ok(())
    }

    /// Elements by number. Those past the end are created; a name that is no number leads nowhere.
    fn array(&mut self, branches: &Branches<'n>, array: RawArray<'a>, trail: &Trail<'_>) -> Result<()> {
        let by_index = branches.by_index();
        if let Some(twice) = by_index.windows(2).find(|w| w[0].0 == w[1].0) {
            // `a.1` and `a.01`
            return Err(conflict(&trail.then(Step::Index(twice[0].0))));
        }
        let mut seen = Seen::new(branches.len());
        let mut len = 0;
        let mut elems = array.elems();
        let mut run = elems.rest();
        for &(index, at) in &by_index {
            let skipped = elems.by_ref().take(index - len).count();
            len += skipped;
            let rest = elems.rest();
            let Some(elem) = elems.next() else { break };
            seen.insert(at);
            self.out.extend_from_slice(&run[..run.len() - rest.len()]);
            self.existing(branches.nodes(at), elem, &trail.then(Step::Index(index)), true)?;
            run = elems.rest();
            len += 1;
        }
        self.out.extend_from_slice(run);
        if by_index.iter().any(|&(_, at)| !seen.contains(at)) {
            // Something is to be created behind the end, so it matters where that is.
            len += elems.count();
        }
        for at in 0..branches.len() {
            if seen.contains(at) {
                continue;
            }
            let name = branches.name(at);
            match branches.index(at) {
                Some(index) => {
                    self.create(branches.nodes(at), name, Parent::Array(index, &mut len), trail)?;
                }
                None => {
                    let place = Place { name, value: ValueRef::Array(array), trail };
                    self.blocked(branches.nodes(at), &place, &trail.then(Step::Name(name)))?;
                }
            }
        }
        Ok(())
    }

    /// Elements by condition, all judged by their values before the update.
    fn elements(
        &mut self,
        choices: &Choices<'n>,
        array: RawArray<'a>,
        trail: &Trail<'_>,
        element_at: usize,
    ) -> Result<()> {
        let mut chosen: Vec<&'n Node> = Vec::new();
        let noted = self.noted();
        let mut modified = 0;
        for (index, elem) in array.elems().enumerate() {
            self.how.context.interrupt.check()?;
            chosen.clear();
            for choice in choices.iter() {
                if self.filters.choose(choice.filter, elem.value(), self.how.context)? {
                    chosen.push(&choice.node);
                }
            }
            let step = trail.then(Step::Index(index));
            let before = self.noted();
            match chosen.as_slice() {
                [] => self.out.extend_from_slice(elem.raw()),
                [one] => self.existing(Nodes::One(one), elem, &step, true)?,
                many => self.existing(Nodes::Many(many), elem, &step, true)?,
            }
            modified += usize::from(self.noted() > before);
        }
        if let Some(log) = &mut self.log
            && modified > 1
        {
            // Of many elements MongoDB tells as one array.
            log.truncate(noted);
            log.note(trail, What::Set(element_at));
        }
        Ok(())
    }

    /// How much was noted.
    fn noted(&self) -> usize {
        self.log.as_ref().map_or(0, Log::len)
    }

    fn existing(&mut self, nodes: Nodes<'_, 'n>, elem: Elem<'a>, trail: &Trail<'_>, in_array: bool) -> Result<()> {
        let value = elem.value();
        match (nodes.view(self.position, trail)?, value) {
            (View::Leaf(leaf), _) => self.leaf(leaf, elem, trail, in_array),
            (View::Fields(branches), ValueRef::Document(doc)) => {
                let start = self.reopen(elem);
                self.document(&branches, doc, trail)?;
                self.close(start);
                Ok(())
            }
            (View::Fields(branches), ValueRef::Array(array)) => {
                let start = self.reopen(elem);
                self.array(&branches, array, trail)?;
                self.close(start);
                Ok(())
            }
            (View::Fields(branches), _) => {
                for at in 0..branches.len() {
                    let name = branches.name(at);
                    let place = Place { name, value, trail };
                    self.blocked(branches.nodes(at), &place, &trail.then(Step::Name(name)))?;
                }
                self.out.extend_from_slice(elem.raw());
                Ok(())
            }
            (View::Elements(choices), ValueRef::Array(array)) => {
                let element_at = self.out.len();
                let start = self.reopen(elem);
                self.elements(&choices, array, trail, element_at)?;
                self.close(start);
                Ok(())
            }
            (View::Elements(_), _) => {
                let element = format!("{}: {value}", trail.name());
                Err(Error::bad_value(format!("Cannot apply array updates to non-array element {element}")))
            }
        }
    }

    fn leaf(&mut self, leaf: &'n Leaf, elem: Elem<'a>, trail: &Trail<'_>, in_array: bool) -> Result<()> {
        let (value, forced) = match leaf.operator.apply(&self.slot(Some(elem.value()), trail))? {
            Outcome::Keep => {
                self.out.extend_from_slice(elem.raw());
                return Ok(());
            }
            Outcome::Remove => {
                self.changed = true;
                if in_array {
                    self.element(Type::Null, elem.name_bytes());
                }
                if let Some(log) = &mut self.log {
                    log.note(trail, if in_array { What::Null } else { What::Removed });
                }
                return Ok(());
            }
            Outcome::Set(value) => (value, false),
            Outcome::Replace(value) => (value, true),
        };
        nesting::check(leaf.depth)?;
        let start = self.out.len();
        self.value(elem.name_bytes(), &value)?;
        if forced || self.out[start..] != *elem.raw() {
            self.changed = true;
            if let Some(log) = &mut self.log {
                match leaf.operator.appends_to(elem.value()) {
                    Some(len) => log.note_appended(trail, start, len, &self.out),
                    None => log.note(trail, What::Set(start)),
                }
            }
            if trail.is_top_level() && elem.name_bytes().first() == Some(&b'$') {
                return Err(path::dollar_prefixed(elem.name()));
            }
        }
        Ok(())
    }

    /// Creates what is not there in a document or array that is.
    fn create(&mut self, nodes: Nodes<'_, 'n>, name: &str, parent: Parent<'_>, trail: &Trail<'_>) -> Result<()> {
        let (start, index) = (self.out.len(), parent.index());
        if !self.missing(nodes, name, parent, trail)? {
            return Ok(());
        }
        if let Some(log) = &mut self.log {
            let step = index.map_or(Step::Name(name), Step::Index);
            // Nulls may stand before it.
            let (mut at, mut elems) = (start, espalier_value::Elems::new(&self.out[start..]));
            while let Some(elem) = elems.next() {
                if elems.rest().is_empty() {
                    break;
                }
                at += elem.raw().len();
            }
            log.note(&trail.then(step), What::Created(at));
        }
        Ok(())
    }

    /// Creates what is not there. True if something was.
    fn missing(&mut self, nodes: Nodes<'_, 'n>, name: &str, parent: Parent<'_>, trail: &Trail<'_>) -> Result<bool> {
        let mut digits = IndexName::new();
        let (here, name) = match parent {
            Parent::Document => (trail.then(Step::Name(name)), name),
            Parent::Array(index, _) => (trail.then(Step::Index(index)), digits.of(index)),
        };
        let start = self.out.len();
        match nodes.view(self.position, &here)? {
            View::Leaf(leaf) if !leaf.operator.creates() => return Ok(false),
            View::Leaf(leaf) => match leaf.operator.apply(&self.slot(None, &here))? {
                Outcome::Keep | Outcome::Remove => return Ok(false),
                Outcome::Set(value) | Outcome::Replace(value) => {
                    nesting::check(leaf.depth)?;
                    self.value(name.as_bytes(), &value)?;
                }
            },
            View::Fields(branches) => {
                self.element(Type::Document, name.as_bytes());
                let inner = self.open();
                let mut created = false;
                for at in 0..branches.len() {
                    created |= self.missing(branches.nodes(at), branches.name(at), Parent::Document, &here)?;
                }
                if !created {
                    self.out.truncate(start);
                    return Ok(false);
                }
                self.close(inner);
            }
            View::Elements(_) => return Err(must_exist(&here)),
        }
        if here.is_top_level() && name.starts_with('$') {
            return Err(path::dollar_prefixed(name));
        }
        if let Parent::Array(index, len) = parent {
            self.backfill(start, *len, index)?;
            *len = index + 1;
        }
        self.changed = true;
        Ok(true)
    }

    /// Puts nulls before the element that was written at `start`, so that it gets the place it was written for.
    fn backfill(&mut self, start: usize, from: usize, to: usize) -> Result<()> {
        if to - from > BACKFILL_MAX {
            let message = format!("can't backfill more than {BACKFILL_MAX} elements");
            return Err(Error::new(Code::CannotBackfillArray, message));
        }
        if to > from {
            let element = self.out.split_off(start);
            let mut digits = IndexName::new();
            for index in from..to {
                self.element(Type::Null, digits.of(index).as_bytes());
            }
            self.out.extend_from_slice(&element);
        }
        self.check_size()
    }

    /// The path goes on below a value that can have nothing below it.
    fn blocked(&self, nodes: Nodes<'_, 'n>, place: &Place<'_, 'a>, trail: &Trail<'_>) -> Result<()> {
        match nodes.view(self.position, trail)? {
            View::Leaf(leaf) => {
                match leaf.operator.blocked(&Slot { at: Some(place.trail), ..self.slot(Some(place.value), trail) })? {
                    Blocked::Ignore => Ok(()),
                    Blocked::CannotCreate => Err(place.cannot_create()),
                    Blocked::CannotTraverse => Err(place.cannot_traverse(trail)),
                }
            }
            View::Fields(branches) => (0..branches.len())
                .try_for_each(|at| self.blocked(branches.nodes(at), place, &trail.then(Step::Name(branches.name(at))))),
            View::Elements(_) => Err(must_exist(trail)),
        }
    }

    fn slot<'s>(&self, value: Option<ValueRef<'a>>, trail: &'s Trail<'s>) -> Slot<'s, 'a> {
        Slot { value, root: self.root, context: self.how.context, inserting: self.how.inserting, trail, at: None }
    }

    /// Type and name; the value follows.
    fn element(&mut self, ty: Type, name: &[u8]) {
        self.out.push(ty as u8);
        self.out.extend_from_slice(name);
        self.out.push(0);
    }

    fn value(&mut self, name: &[u8], value: &Value<'_>) -> Result<()> {
        let value = value.or_null();
        self.element(value.ty(), name);
        push_value(&mut self.out, value);
        self.check_size()
    }

    fn check_size(&self) -> Result<()> {
        if self.out.len() > RESULT_BYTES_MAX {
            let message = format!("Resulting document after update is larger than {RESULT_BYTES_MAX}");
            return Err(Error::new(Code(17419), message));
        }
        Ok(())
    }

    /// Begins a document or array; `close` with what this returns ends it.
    fn open(&mut self) -> usize {
        let start = self.out.len();
        self.out.extend_from_slice(&[0; 4]);
        start
    }

    /// Begins a document or array under the type and name that `elem` has.
    fn reopen(&mut self, elem: Elem<'_>) -> usize {
        let header = elem.raw().len() - elem.value_bytes().len();
        self.out.extend_from_slice(&elem.raw()[..header]);
        self.open()
    }

    fn close(&mut self, start: usize) {
        self.out.push(0);
        let len = (self.out.len() - start) as u32;
        self.out[start..start + 4].copy_from_slice(&len.to_le_bytes());
    }
}

/// The value that a path cannot go on below, and the part that it would have to go on with.
struct Place<'p, 'a> {
    name: &'p str,
    value: ValueRef<'a>,
    trail: &'p Trail<'p>,
}

impl Place<'_, '_> {
    fn element(&self) -> String {
        format!("{{{}: {}}}", self.trail.name(), self.value)
    }

    fn cannot_create(&self) -> Error {
        let message = format!("Cannot create field '{}' in element {}", self.name, self.element());
        Error::new(Code::PathNotViable, message)
    }

    fn cannot_traverse(&self, whole: &Trail<'_>) -> Error {
        let (name, path, element) = (self.name, whole.dotted(), self.element());
        let message = format!("Cannot use the part ({name}) of ({path}) to traverse the element ({element})");
        Error::new(Code::PathNotViable, message)
    }
}

fn must_exist(trail: &Trail<'_>) -> Error {
    let path = trail.dotted();
    Error::bad_value(format!("The path '{path}' must exist in the document in order to apply array updates."))
}
