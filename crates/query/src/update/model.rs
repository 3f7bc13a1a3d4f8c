//! Checks `apply` against a model that is as plain as possible: random documents are decoded into trees, the operators
//! are carried out on the trees one after the other, and the bytes must agree.

use espalier_value::{DocBuf, RawDoc, ValueRef};

use super::{Apply, Update};
use crate::context::Context;
use crate::expression::Scope;

#[derive(Clone, Debug, PartialEq)]
enum Tree {
    Int(i32),
    Long(i64),
    Text(String),
    Null,
    Doc(Vec<(String, Tree)>),
    List(Vec<Tree>),
}

impl Tree {
    fn of(value: ValueRef<'_>) -> Tree {
        match value {
            ValueRef::Int32(x) => Tree::Int(x),
            ValueRef::Int64(x) => Tree::Long(x),
            ValueRef::String(s) => Tree::Text(s.to_string()),
            ValueRef::Document(d) => Tree::Doc(d.iter().map(|e| (e.name().to_string(), Tree::of(e.value()))).collect()),
            ValueRef::Array(a) => Tree::List(a.iter().map(Tree::of).collect()),
            _ => Tree::Null,
        }
    }

    fn write(&self, doc: &mut DocBuf, name: &str) {
        match self {
            Tree::Int(x) => doc.append(name, *x),
            Tree::Long(x) => doc.append(name, *x),
            Tree::Text(s) => doc.append(name, s),
            Tree::Null => doc.append(name, ValueRef::Null),
            Tree::Doc(fields) => doc.append(name, &document(fields)),
            Tree::List(items) => {
                let mut wrapped = DocBuf::new();
                for (i, item) in items.iter().enumerate() {
                    item.write(&mut wrapped, &i.to_string());
                }
                doc.append(name, ValueRef::Array(espalier_value::RawArray::of(wrapped.as_raw())))
            }
        };
    }
}

fn document(fields: &[(String, Tree)]) -> DocBuf {
    let mut doc = DocBuf::new();
    fields.iter().for_each(|(name, tree)| tree.write(&mut doc, name));
    doc
}

/// What the model can do at the end of a path.
#[derive(Clone, Debug)]
enum Op {
    Set(Tree),
    Unset,
    Inc(i32),
    Push(Tree),
    Pop(i32),
    AddToSet(Tree),
}

impl Op {
    fn name(&self) -> &'static str {
        match self {
            Op::Set(_) => "$set",
            Op::Unset => "$unset",
            Op::Inc(_) => "$inc",
            Op::Push(_) => "$push",
            Op::Pop(_) => "$pop",
            Op::AddToSet(_) => "$addToSet",
        }
    }

    fn argument(&self) -> Tree {
        match self {
            Op::Set(tree) | Op::Push(tree) | Op::AddToSet(tree) => tree.clone(),
            Op::Unset => Tree::Text(String::new()),
            Op::Inc(x) | Op::Pop(x) => Tree::Int(*x),
        }
    }

    /// `Err` where MongoDB refuses; `Ok(None)` where there is nothing to do.
    fn on(&self, old: Option<&Tree>) -> Result<Option<Tree>, ()> {
        match (self, old) {
            (Op::Set(new), _) => Ok(Some(new.clone())),
            (Op::Inc(by), None) => Ok(Some(Tree::Int(*by))),
            (Op::Inc(by), Some(Tree::Int(x))) => {
                let sum = i64::from(*x) + i64::from(*by);
                Ok(Some(i32::try_from(sum).map_or(Tree::Long(sum), Tree::Int)))
            }
            (Op::Inc(by), Some(Tree::Long(x))) => x.checked_add((*by).into()).map(|x| Some(Tree::Long(x))).ok_or(()),
            (Op::Push(item) | Op::AddToSet(item), None) => Ok(Some(Tree::List(vec![item.clone()]))),
            (Op::Push(item), Some(Tree::List(items))) => {
                Ok(Some(Tree::List(items.iter().cloned().chain([item.clone()]).collect())))
            }
            (Op::AddToSet(item), Some(Tree::List(items))) => {
                let present = items.iter().any(|i| same_value(i, item));
                Ok((!present).then(|| Tree::List(items.iter().cloned().chain([item.clone()]).collect())))
            }
            (Op::Pop(_), None) => Ok(None),
            (Op::Pop(end), Some(Tree::List(items))) => Ok(Some(Tree::List(match (items.split_first(), *end) {
                (None, _) => Vec::new(),
                (Some((_, rest)), -1) => rest.to_vec(),
                (Some(_), _) => items[..items.len() - 1].to_vec(),
            }))),
            _ => Err(()),
        }
    }
}

/// Equal as MongoDB compares: an int equals a long.
fn same_value(a: &Tree, b: &Tree) -> bool {
    let whole = |t: &Tree| match t {
        Tree::Int(x) => Some(i64::from(*x)),
        Tree::Long(x) => Some(*x),
        _ => None,
    };
    match (a, b) {
        (Tree::Doc(x), Tree::Doc(y)) => {
            x.len() == y.len() && x.iter().zip(y).all(|(p, q)| p.0 == q.0 && same_value(&p.1, &q.1))
        }
        (Tree::List(x), Tree::List(y)) => x.len() == y.len() && x.iter().zip(y).all(|(p, q)| same_value(p, q)),
        _ => match (whole(a), whole(b)) {
            (Some(x), Some(y)) => x == y,
            _ => a == b,
        },
    }
}

/// Carries out one operator at one path.
fn carry_out(at: &mut Tree, path: &[&str], op: &Op) -> Result<(), ()> {
    let (name, rest) = path.split_first().ok_or(())?;
    match at {
        Tree::Doc(fields) => {
            let place = fields.iter().position(|(n, _)| n == name);
            match (place, rest.is_empty(), op) {
                (Some(i), true, Op::Unset) => drop(fields.remove(i)),
                (Some(i), true, _) => {
                    if let Some(new) = op.on(Some(&fields[i].1))? {
                        fields[i].1 = new;
                    }
                }
                (Some(i), false, _) => carry_out(&mut fields[i].1, rest, op)?,
                (None, ..) => {
                    if let Some(new) = create(rest, op)? {
                        fields.push(((*name).to_string(), new));
                    }
                }
            }
            Ok(())
        }
        Tree::List(items) => {
            let Ok(i) = name.parse::<usize>() else { return blocked(op) };
            match (items.get_mut(i), rest.is_empty(), op) {
                (Some(item), true, Op::Unset) => *item = Tree::Null,
                (Some(item), true, _) => {
                    if let Some(new) = op.on(Some(item))? {
                        *item = new;
                    }
                }
                (Some(item), false, _) => carry_out(item, rest, op)?,
                (None, ..) => {
                    if let Some(new) = create(rest, op)? {
                        items.resize(i, Tree::Null);
                        items.push(new);
                    }
                }
            }
            Ok(())
        }
        _ => blocked(op),
    }
}

fn blocked(op: &Op) -> Result<(), ()> {
    if matches!(op, Op::Unset) { Ok(()) } else { Err(()) }
}

fn create(rest: &[&str], op: &Op) -> Result<Option<Tree>, ()> {
    match (rest.split_first(), op) {
        (_, Op::Unset) => Ok(None),
        (None, _) => op.on(None),
        (Some((name, rest)), _) => Ok(create(rest, op)?.map(|inner| Tree::Doc(vec![((*name).to_string(), inner)]))),
    }
}

/// xorshift, so that a failure can be repeated from its seed.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % n as u64) as usize
    }

    fn tree(&mut self, depth: usize) -> Tree {
        match self.below(if depth > 2 { 4 } else { 7 }) {
            0 => Tree::Int([0, 1, 7, i32::MAX][self.below(4)]),
            1 => Tree::Long([1, 5, i64::MAX][self.below(3)]),
            2 => Tree::Text("x".repeat(self.below(3))),
            3 => Tree::Null,
            4 | 5 => Tree::Doc(self.fields(depth + 1)),
            _ => Tree::List((0..self.below(4)).map(|_| self.tree(depth + 1)).collect()),
        }
    }

    fn fields(&mut self, depth: usize) -> Vec<(String, Tree)> {
        let mut fields = Vec::new();
        for name in ["b", "a", "0", "2", "c"] {
            if self.below(2) == 0 {
                fields.push((name.to_string(), self.tree(depth)));
            }
        }
        fields
    }

    fn path(&mut self) -> Vec<&'static str> {
        let len = 1 + self.below(3);
        (0..len).map(|_| ["a", "b", "c", "0", "1", "2", "4"][self.below(7)]).collect()
    }

    fn op(&mut self) -> Op {
        match self.below(6) {
            0 => Op::Set(self.tree(1)),
            1 => Op::Unset,
            2 => Op::Inc([0, 1, -3][self.below(3)]),
            3 => Op::Push(self.tree(2)),
            4 => Op::Pop([1, -1][self.below(2)]),
            _ => Op::AddToSet(self.tree(2)),
        }
    }
}

/// Paths in the order in which the tree applies them; `None` if two of them conflict.
fn in_order(mut changes: Vec<(Vec<&'static str>, Op)>) -> Option<Vec<(Vec<&'static str>, Op)>> {
    changes.sort_by(|a, b| a.0.cmp(&b.0));
    changes.windows(2).all(|w| !w[1].0.starts_with(&w[0].0)).then_some(changes)
}

fn update_document(changes: &[(Vec<&'static str>, Op)]) -> DocBuf {
    let mut update = DocBuf::new();
    for name in ["$set", "$unset", "$inc", "$push", "$pop", "$addToSet"] {
        let mut arguments = DocBuf::new();
        for (path, op) in changes.iter().filter(|(_, op)| op.name() == name) {
            op.argument().write(&mut arguments, &path.join("."));
        }
        if !arguments.is_empty() {
            update.append(name, &arguments);
        }
    }
    update
}

#[test]
fn random_updates_do_what_the_model_does() {
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    let context = Context::new(0, 1);
    let (mut changed, mut kept, mut refused) = (0, 0, 0);
    for round in 0..20_000 {
        let fields = random.fields(0);
        let count = 1 + random.below(3);
        let changes = (0..count).map(|_| (random.path(), random.op())).collect();
        let Some(changes) = in_order(changes) else { continue };
        let (doc, update) = (document(&fields), update_document(&changes));

        let mut model = Tree::Doc(fields);
        let expected = changes.iter().try_for_each(|(path, op)| carry_out(&mut model, path, op)).map(|()| model);
        let parsed = Update::parse(ValueRef::from(&update), &[], &Scope::default()).unwrap();
        let got = parsed.apply(doc.as_raw(), &Apply::new(&context));

        let case = || format!("round {round}: {} on {}", update.as_raw(), doc.as_raw());
        match (expected, got) {
            (Err(()), Err(_)) => refused += 1,
            (Ok(tree), Ok(Some(new))) => {
                assert_eq!(tree, Tree::of(ValueRef::Document(new.as_raw())), "{}", case());
                espalier_value::validate(new.as_bytes()).unwrap();
                changed += 1;
            }
            (Ok(tree), Ok(None)) => {
                assert_eq!(tree, Tree::of(ValueRef::Document(doc.as_raw())), "{}", case());
                kept += 1;
            }
            (expected, got) => panic!("{}: {expected:?} but {got:?}", case()),
        }
    }
    // Each outcome must have been met often, or the test would prove little.
    assert!(changed > 3000 && kept > 300 && refused > 1000, "{changed} {kept} {refused}");
}

#[test]
fn an_update_of_nothing_returns_nothing() {
    let doc = document(&[("a".into(), Tree::Int(1))]);
    let update = update_document(&[(vec!["a"], Op::Inc(0))]);
    let parsed = Update::parse(ValueRef::from(&update), &[], &Scope::default()).unwrap();
    assert!(parsed.apply(RawDoc::trusted(doc.as_bytes()), &Apply::new(&Context::default())).unwrap().is_none());
}
