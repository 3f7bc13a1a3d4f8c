//! Whether a history of list appends is one that snapshot isolation allows, after the manner of Elle.
//!
//! Every value is appended once, so a list that was read says in which order its values were written, and by whom. From
//! that follow the dependencies between transactions: who wrote after whom (ww), who read from whom (wr), who read what
//! another overwrote (rw). Under snapshot isolation every cycle of them has two rw edges in a row.

use std::collections::HashMap;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    Append(usize, u64),
    Read(usize, Vec<u64>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Committed,
    Aborted,
}

#[derive(Clone, Debug)]
pub struct Transaction {
    /// Transactions of one session come one after the other.
    pub session: usize,
    pub ops: Vec<Op>,
    pub outcome: Outcome,
}

/// The first thing that is wrong with a history; `end` is what the lists were when all was over.
pub fn check(history: &[Transaction], end: &HashMap<usize, Vec<u64>>) -> Result<(), String> {
    history.iter().try_for_each(check_internal)?;
    let writers = writers(history)?;
    check_end(history, end, &writers)?;
    let committed = |at: &usize| history[*at].outcome == Outcome::Committed;
    for (reader, transaction) in history.iter().enumerate().filter(|(at, _)| committed(at)) {
        for (key, list) in external_reads(transaction) {
            let order = end.get(&key).map_or(&[][..], Vec::as_slice);
            if !order.starts_with(&list) {
                return Err(format!("transaction {reader} read {list:?} of {key}, which is no beginning of {order:?}"));
            }
            if let Some(last) = list.last()
                && let Some(writer) = writers.get(&(key, *last))
            {
                let final_value = appends(&history[*writer]).filter(|(k, _)| *k == key).last();
                if *writer != reader && final_value != Some((key, *last)) {
                    return Err(format!("transaction {reader} read an intermediate state of {writer} at {key}"));
                }
            }
        }
    }
    match cycle(&edges(history, end, &writers)) {
        Some(cycle) => Err(format!("a cycle that snapshot isolation forbids: {cycle:?}")),
        None => Ok(()),
    }
}

fn appends(transaction: &Transaction) -> impl Iterator<Item = (usize, u64)> {
    transaction.ops.iter().filter_map(|op| match op {
        Op::Append(key, value) => Some((*key, *value)),
        Op::Read(..) => None,
    })
}

/// A transaction sees one snapshot and its own writes.
fn check_internal(transaction: &Transaction) -> Result<(), String> {
    let mut seen: HashMap<usize, Vec<u64>> = HashMap::new();
    let mut own: HashMap<usize, Vec<u64>> = HashMap::new();
    for op in &transaction.ops {
        match op {
            Op::Append(key, value) => {
                own.entry(*key).or_default().push(*value);
                if let Some(list) = seen.get_mut(key) {
                    list.push(*value);
                }
            }
            Op::Read(key, list) => {
                let written = own.get(key).map_or(&[][..], Vec::as_slice);
                if seen.get(key).is_some_and(|before| before != list) || !list.ends_with(written) {
                    return Err(format!("a transaction's reads do not agree with each other: {transaction:?}"));
                }
                seen.insert(*key, list.clone());
            }
        }
    }
    Ok(())
}

/// The lists a transaction read of others: without what it appended itself.
fn external_reads(transaction: &Transaction) -> Vec<(usize, Vec<u64>)> {
    let own: Vec<(usize, u64)> = appends(transaction).collect();
    let reads = transaction.ops.iter().filter_map(|op| match op {
        Op::Read(key, list) => {
            Some((*key, list.iter().copied().filter(|value| !own.contains(&(*key, *value))).collect()))
        }
        Op::Append(..) => None,
    });
    reads.collect()
}

fn writers(history: &[Transaction]) -> Result<HashMap<(usize, u64), usize>, String> {
    let mut writers = HashMap::new();
    for (at, transaction) in history.iter().enumerate() {
        for append in appends(transaction) {
            if writers.insert(append, at).is_some() {
                return Err(format!("{append:?} was appended twice: the test is wrong"));
            }
        }
    }
    Ok(writers)
}

/// Every committed append is there once, and nothing else.
fn check_end(
    history: &[Transaction],
    end: &HashMap<usize, Vec<u64>>,
    writers: &HashMap<(usize, u64), usize>,
) -> Result<(), String> {
    let mut found = HashMap::new();
    for (key, list) in end {
        for value in list {
            match writers.get(&(*key, *value)) {
                Some(writer) if history[*writer].outcome == Outcome::Committed => {}
                _ => return Err(format!("{value} at {key} was never committed")),
            }
            if found.insert((*key, *value), ()).is_some() {
                return Err(format!("{value} at {key} is there twice"));
            }
        }
    }
    for transaction in history.iter().filter(|transaction| transaction.outcome == Outcome::Committed) {
        if let Some(lost) = appends(transaction).find(|append| !found.contains_key(append)) {
            return Err(format!("the committed append {lost:?} is lost"));
        }
    }
    Ok(())
}

/// Dependencies, and dependencies followed by one rw edge: acyclic exactly if the history is snapshot isolated.
fn edges(
    history: &[Transaction],
    end: &HashMap<usize, Vec<u64>>,
    writers: &HashMap<(usize, u64), usize>,
) -> Vec<Vec<usize>> {
    let mut dependencies = vec![Vec::new(); history.len()];
    let mut overwrites = vec![Vec::new(); history.len()];
    let mut last_of_session: HashMap<usize, usize> = HashMap::new();
    for (key, list) in end {
        for pair in list.windows(2) {
            let (Some(a), Some(b)) = (writers.get(&(*key, pair[0])), writers.get(&(*key, pair[1]))) else { continue };
            if a != b {
                dependencies[*a].push(*b);
            }
        }
    }
    for (at, transaction) in history.iter().enumerate().filter(|(_, t)| t.outcome == Outcome::Committed) {
        if let Some(before) = last_of_session.insert(transaction.session, at) {
            dependencies[before].push(at);
        }
        for (key, list) in external_reads(transaction) {
            if let Some(writer) = list.last().and_then(|last| writers.get(&(key, *last))) {
                dependencies[*writer].push(at);
            }
            let next = end.get(&key).and_then(|order| order.get(list.len()));
            if let Some(writer) = next.and_then(|next| writers.get(&(key, *next)))
                && *writer != at
            {
                overwrites[at].push(*writer);
            }
        }
    }
    let mut all = dependencies.clone();
    for (from, nexts) in dependencies.iter().enumerate() {
        for next in nexts {
            all[from].extend(&overwrites[*next]);
        }
    }
    all
}

/// Some cycle of a graph.
fn cycle(edges: &[Vec<usize>]) -> Option<Vec<usize>> {
    const NEW: u8 = 0;
    const OPEN: u8 = 1;
    const DONE: u8 = 2;
    let mut state = vec![NEW; edges.len()];
    for start in 0..edges.len() {
        if state[start] != NEW {
            continue;
        }
        let mut path = vec![(start, 0)];
        state[start] = OPEN;
        while let Some((node, next)) = path.last_mut() {
            match edges[*node].get(*next) {
                None => {
                    state[*node] = DONE;
                    path.pop();
                }
                Some(&to) => {
                    *next += 1;
                    match state[to] {
                        NEW => {
                            state[to] = OPEN;
                            path.push((to, 0));
                        }
                        OPEN => {
                            let from = path.iter().position(|(node, _)| *node == to).unwrap_or(0);
                            return Some(path[from..].iter().map(|(node, _)| *node).collect());
                        }
                        _ => {}
                    }
                }
            }
        }
    }
    None
}

#[test]
fn the_checker_knows_good_from_bad() {
    use Op::{Append, Read};
    use Outcome::{Aborted, Committed};
    let run = |transactions: &[(Outcome, &[Op])], end: &[(usize, &[u64])]| {
        let history: Vec<Transaction> = transactions
            .iter()
            .enumerate()
            .map(|(session, (outcome, ops))| Transaction { session, ops: ops.to_vec(), outcome: *outcome })
            .collect();
        check(&history, &end.iter().map(|(key, list)| (*key, list.to_vec())).collect())
    };
    let read = |key, list: &[u64]| Read(key, list.to_vec());
    // In order.
    run(&[(Committed, &[Append(0, 1)]), (Committed, &[read(0, &[1]), Append(0, 2)])], &[(0, &[1, 2])]).unwrap();
    // Write skew: two rw edges in a row, which snapshot isolation allows.
    let skew: &[(Outcome, &[Op])] =
        &[(Committed, &[read(0, &[]), Append(1, 1)]), (Committed, &[read(1, &[]), Append(0, 2)])];
    run(skew, &[(0, &[2]), (1, &[1])]).unwrap();
    type Case<'c> = (&'c str, &'c [(Outcome, &'c [Op])], &'c [(usize, &'c [u64])]);
    let bad: &[Case<'_>] = &[
        (
            "lost update",
            &[(Committed, &[read(0, &[]), Append(0, 1)]), (Committed, &[read(0, &[]), Append(0, 2)])],
            &[(0, &[1, 2])],
        ),
        ("lost write", &[(Committed, &[Append(0, 1)])], &[]),
        ("aborted read", &[(Aborted, &[Append(0, 1)]), (Committed, &[read(0, &[1])])], &[]),
        (
            "intermediate read",
            &[(Committed, &[Append(0, 1), Append(0, 2)]), (Committed, &[read(0, &[1])])],
            &[(0, &[1, 2])],
        ),
        ("fuzzy read", &[(Committed, &[Append(0, 1)]), (Committed, &[read(0, &[]), read(0, &[1])])], &[(0, &[1])]),
        (
            "read skew",
            &[(Committed, &[Append(0, 1), Append(1, 2)]), (Committed, &[read(0, &[1]), read(1, &[])])],
            &[(0, &[1]), (1, &[2])],
        ),
        (
            "long fork",
            &[
                (Committed, &[Append(0, 1)]),
                (Committed, &[Append(1, 2)]),
                (Committed, &[read(0, &[1]), read(1, &[])]),
                (Committed, &[read(0, &[]), read(1, &[2])]),
            ],
            &[(0, &[1]), (1, &[2])],
        ),
        (
            "dirty write",
            &[(Committed, &[Append(0, 1), Append(1, 2)]), (Committed, &[Append(0, 3), Append(1, 4)])],
            &[(0, &[1, 3]), (1, &[4, 2])],
        ),
    ];
    for (what, transactions, end) in bad {
        assert!(run(transactions, end).is_err(), "{what} was not noticed");
    }
}
