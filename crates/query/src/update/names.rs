//! Names side by side: the order in which missing fields are created, and finding one name among many.

use std::cmp::Ordering;
use std::collections::HashMap;

/// Up to this many names a scan is quicker than a look-up.
pub(super) const SCAN_MAX: usize = 8;

/// Finds the place of a name in a list.
#[derive(Debug, Default)]
pub(super) struct Places<K> {
    /// Empty for a short list.
    places: HashMap<K, usize>,
}

impl<K: AsRef<[u8]> + std::hash::Hash + Eq + std::borrow::Borrow<[u8]>> Places<K> {
    pub fn new(names: impl ExactSizeIterator<Item = K>) -> Places<K> {
        let places = if names.len() <= SCAN_MAX { HashMap::new() } else { names.zip(0..).collect() };
        Places { places }
    }

    /// `names` is the list that this was made of.
    pub fn find<'c>(&self, mut names: impl Iterator<Item = &'c [u8]>, name: &[u8]) -> Option<usize> {
        if self.places.is_empty() { names.position(|other| other == name) } else { self.places.get(name).copied() }
    }
}

/// Sorts by the order in which MongoDB creates missing fields: numbers by value, everything else by its bytes.
///
/// With names such as `1x` that order goes round in a circle (`2 < 10 < 1x < 2`); so the numbers are put in order first
/// and each other name after the last of them that it does not precede.
pub(super) fn sort<T>(items: &mut [T], name: impl Fn(&T) -> &str) {
    items.sort_by(|a, b| (digits(name(b)).is_some().cmp(&digits(name(a)).is_some())).then(order(name(a), name(b))));
    let count = items.iter().position(|item| digits(name(item)).is_none()).unwrap_or(items.len());
    if count == 0 || count == items.len() {
        return;
    }
    // For every number in the order of bytes: how many numbers, in the order of values, end with it or one before it.
    let mut by_bytes: Vec<(Box<str>, usize)> = items[..count].iter().map(|n| name(n).into()).zip(1..).collect();
    by_bytes.sort();
    let mut last = 0;
    for (_, upto) in &mut by_bytes {
        last = last.max(*upto);
        *upto = last;
    }
    let numbers_before = |other: &str| {
        let below = by_bytes.partition_point(|(number, _)| **number < *other);
        below.checked_sub(1).map_or(0, |i| by_bytes[i].1)
    };
    let mut number = 0;
    items.sort_by_cached_key(|item| {
        if digits(name(item)).is_some() {
            number += 1;
            (number, false)
        } else {
            (numbers_before(name(item)), true)
        }
    });
}

fn order(a: &str, b: &str) -> Ordering {
    match (digits(a), digits(b)) {
        (Some(x), Some(y)) => x.len().cmp(&y.len()).then_with(|| x.cmp(y)).then_with(|| a.cmp(b)),
        _ => a.cmp(b),
    }
}

/// The digits without leading zeros, if the name is all digits.
fn digits(name: &str) -> Option<&str> {
    (!name.is_empty() && name.bytes().all(|b| b.is_ascii_digit())).then(|| name.trim_start_matches('0'))
}

/// An array index as updates read it: digits (leading zeros too) that fit 32 bits.
pub(super) fn array_index(name: &str) -> Option<usize> {
    digits(name)?;
    name.parse::<u32>().ok().and_then(|n| usize::try_from(n).ok())
}

#[cfg(test)]
mod tests {
    use super::{array_index, sort};

    fn sorted(names: &[&'static str]) -> Vec<&'static str> {
        let mut names = names.to_vec();
        sort(&mut names, |n| n);
        names
    }

    #[test]
    fn numbers_go_by_value_and_names_by_bytes() {
        assert_eq!(sorted(&["b", "10", "a", "9", "_", "A", "2", "01"]), ["01", "2", "9", "10", "A", "_", "a", "b"]);
        assert_eq!(sorted(&["6012", "5f3a"]), ["5f3a", "6012"]);
        assert_eq!(sorted(&["-1", "3"]), ["-1", "3"]);
    }

    #[test]
    fn a_circle_keeps_the_numbers_in_order() {
        assert_eq!(sorted(&["10", "1x", "2", "100"]), ["2", "10", "100", "1x"]);
        let many: Vec<String> = (0..2000).map(|i| if i % 2 == 0 { format!("{i}x") } else { i.to_string() }).collect();
        let mut names: Vec<&str> = many.iter().map(String::as_str).collect();
        sort(&mut names, |n| n);
        let numbers: Vec<u32> = names.iter().filter_map(|n| n.parse().ok()).collect();
        assert!(numbers.is_sorted() && numbers.len() == 1000);
    }

    #[test]
    fn indexes_may_have_leading_zeros() {
        assert_eq!(array_index("01"), Some(1));
        assert_eq!(array_index("0"), Some(0));
        assert_eq!(array_index(""), None);
        assert_eq!(array_index("-1"), None);
        assert_eq!(array_index("4294967295"), Some(4_294_967_295));
        assert_eq!(array_index("4294967296"), None);
    }
}
