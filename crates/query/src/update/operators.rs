//! Operator documents, `{$set: {…}, $inc: {…}}`: parsing into the tree, and applying it.

use espalier_value::{Code, DocBuf, Error, Path, RawDoc, Result, ValueRef};

use super::array_filters::ArrayFilters;
use super::describe::{Description, Log};
use super::operator::{self, Argument, rename};
use super::tree::{Fields, Leaf, Node, Part};
use super::walk::Walk;
use super::{Apply, immutable_id, path};
use crate::expression::Scope;

#[derive(Debug)]
pub(super) struct Operators {
    tree: Node,
    filters: ArrayFilters,
    needs_position: bool,
    touches_id: bool,
    touched: Vec<Path>,
    /// Nothing but `$inc`, of fields that are named in full.
    only_increments: bool,
}

impl Operators {
    pub fn parse(doc: RawDoc<'_>, array_filters: &[RawDoc<'_>], scope: &Scope) -> Result<Operators> {
        let mut parser = Parser {
            fields: Fields::default(),
            filters: ArrayFilters::parse(array_filters, scope)?,
            needs_position: false,
            touched: Vec::new(),
            fixed: true,
        };
        let mut only_increments = true;
        for elem in doc {
            let name = elem.name();
            let Some(definition) = operator::find(name) else { return Err(unknown(name)) };
            only_increments &= definition.name == "$inc";
            let ValueRef::Document(arguments) = elem.value() else {
                let (ty, shown) = (elem.value().ty().name(), format!("{name}: {}", elem.value()));
                let message = format!(
                    "Modifiers operate on fields but we found type {ty} instead. For example: {{$mod: {{<field>: \
                     ...}}}} not {{{shown}}}"
                );
                return Err(Error::failed_to_parse(message));
            };
            for argument in arguments {
                let argument = Argument { path: argument.name(), value: argument.value(), scope };
                parser.add(definition, &argument)?;
            }
        }
        parser.filters.check_all_used(doc)?;
        let mut tree = Node::Fields(parser.fields);
        tree.finish();
        Ok(Operators {
            touches_id: parser.touched.iter().any(|p| p.first() == "_id"),
            tree,
            filters: parser.filters,
            needs_position: parser.needs_position,
            only_increments: only_increments && parser.fixed,
            touched: parser.touched,
        })
    }

    pub fn needs_position(&self) -> bool {
        self.needs_position
    }

    pub fn touched(&self) -> &[Path] {
        &self.touched
    }

    /// The fields that it adds to, if that is all it does and each is named in full.
    pub fn increments(&self) -> Option<&[Path]> {
        (self.only_increments && !self.touched.is_empty()).then_some(&self.touched)
    }

    /// True if what stands at the path in the tree is one operator, and it appends.
    pub fn appends_to(&self, path: &Path) -> bool {
        let mut node = &self.tree;
        for part in path.parts() {
            let Node::Fields(fields) = node else { return false };
            let Some(at) = fields.find(part.name().as_bytes()) else { return false };
            node = &fields.children[at].node;
        }
        matches!(node, Node::Leaf(leaf) if leaf.operator.appends())
    }

    pub fn apply(&self, doc: RawDoc<'_>, how: &Apply<'_>) -> Result<Option<DocBuf>> {
        Ok(self.run(doc, how, None)?.map(|(updated, _)| updated))
    }

    pub fn apply_described(&self, doc: RawDoc<'_>, how: &Apply<'_>) -> Result<Option<(DocBuf, Description)>> {
        let done = self.run(doc, how, Some(Log::default()))?;
        Ok(done.map(|(updated, log)| {
            let told = log.unwrap_or_default().describe(updated.as_bytes());
            (updated, Description::Updated(told))
        }))
    }

    pub(super) fn run(
        &self,
        doc: RawDoc<'_>,
        how: &Apply<'_>,
        log: Option<Log>,
    ) -> Result<Option<(DocBuf, Option<Log>)>> {
        let position = if self.needs_position { how.position.map(|index| index.to_string()) } else { None };
        let mut walk = Walk {
            how,
            filters: &self.filters,
            position: position.as_deref(),
            root: doc,
            // Room for small growth, so that an ordinary `$set` or `$push` does not move the bytes twice.
            out: Vec::with_capacity(doc.as_bytes().len() + 64),
            changed: false,
            in_tree_order: false,
            log,
        };
        walk.run(&self.tree)?;
        if !walk.changed {
            return Ok(None);
        }
        let updated =
            DocBuf::from_bytes(walk.out).ok_or_else(|| Error::internal("an update wrote a broken document"))?;
        if self.touches_id {
            self.check_id(doc, updated.as_raw())?;
        }
        Ok(Some((updated, walk.log)))
    }

    /// `_id` may be set where there was none (the document of an upsert); one that is there keeps its very bytes.
    fn check_id(&self, old: RawDoc<'_>, new: RawDoc<'_>) -> Result<()> {
        match (old.elem("_id"), new.elem("_id")) {
            (Some(before), Some(after)) if before.raw() == after.raw() => Ok(()),
            (Some(before), after) => {
                let path = self.touched.iter().find(|p| p.first() == "_id").map_or("_id", Path::as_str);
                match (before.value(), after.map(|a| a.value())) {
                    // Something was added inside it.
                    (ValueRef::Document(b), Some(ValueRef::Document(a))) if b.count() < a.count() => {
                        let message =
                            format!("Updating the path '_id' to _id: {a} would modify the immutable field '_id'");
                        Err(Error::new(Code::ImmutableField, message))
                    }
                    _ => Err(immutable_id(path)),
                }
            }
            (None, _) => Ok(()),
        }
    }
}

struct Parser {
    fields: Fields,
    filters: ArrayFilters,
    needs_position: bool,
    touched: Vec<Path>,
    /// No path has a part that depends on the document.
    fixed: bool,
}

impl Parser {
    fn add(&mut self, definition: &operator::Definition, argument: &Argument<'_>) -> Result<()> {
        match (definition.name, argument.value) {
            // The operator sits at the target; the source is given up by one of its own.
            ("$rename", ValueRef::String(target)) => {
                self.insert(argument.path, Box::new(rename::Source))?;
                self.insert(target, (definition.parse)(argument)?)
            }
            _ => self.insert(argument.path, (definition.parse)(argument)?),
        }
    }

    fn insert(&mut self, text: &str, operator: Box<dyn operator::Operator>) -> Result<()> {
        let parts = path::parse(text, |identifier| self.filters.number(identifier))?;
        self.needs_position |= parts.contains(&Part::Positional);
        let fixed = parts.iter().take_while(|part| matches!(part, Part::Name(_))).count();
        self.fixed &= fixed == parts.len();
        self.touched.push(Path::new(first(text, fixed)));
        let depth = parts.len() + operator.depth();
        self.fields.insert(&parts, text, 0, Leaf { operator, depth })
    }
}

/// The first so many names of a path.
fn first(text: &str, names: usize) -> &str {
    let end = text.match_indices('.').nth(names.saturating_sub(1)).map_or(text.len(), |(at, _)| at);
    &text[..end]
}

fn unknown(name: &str) -> Error {
    if name == "$v" {
        return Error::failed_to_parse("The $v update field is only recognized internally");
    }
    Error::failed_to_parse(format!(
        "Unknown modifier: {name}. Expected a valid update modifier or pipeline-style update specified as an array"
    ))
}
