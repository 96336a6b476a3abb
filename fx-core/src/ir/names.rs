//! The name space of a graph: torch.fx's naming rules, with a few bytes per name.
//!
//! Invariant: live names are unique, and an assigned name is never assigned again.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use indexmap::IndexMap;
use indexmap::map::raw_entry_v1::{RawEntryApiV1, RawEntryMut};
use rustc_hash::FxBuildHasher;

/// A name: an interned base and, usually, a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct NameId {
    pub base: u32,
    /// `BARE` for a name without a number.
    pub number: u32,
}

impl NameId {
    /// Increases with the number among the names with the same base; never 0.
    pub fn rank(self) -> u32 {
        match self.number {
            BARE => 1,
            number => number.saturating_add(2),
        }
    }
}

pub(crate) const BARE: u32 = u32::MAX;

/// A node's name, for printing and comparing.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Name<'g> {
    pub(crate) base: &'g str,
    pub(crate) number: u32,
}

impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.base)?;
        if self.number != BARE {
            f.write_str("_")?;
            f.write_str(itoa::Buffer::new().format(self.number))?;
        }
        Ok(())
    }
}

/// Same as [`to_string`](ToString::to_string), without the formatting machinery.
impl From<Name<'_>> for String {
    fn from(name: Name<'_>) -> Self {
        let mut digits = itoa::Buffer::new();
        match name.number {
            BARE => name.base.to_string(),
            number => [name.base, "_", digits.format(number)].concat(),
        }
    }
}

impl fmt::Debug for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl PartialEq<str> for Name<'_> {
    fn eq(&self, other: &str) -> bool {
        let Some(rest) = other.strip_prefix(self.base) else {
            return false;
        };
        if self.number == BARE {
            return rest.is_empty();
        }
        rest.strip_prefix('_')
            .is_some_and(|digits| canonical_number(digits) == Some(self.number))
    }
}

impl PartialEq<&str> for Name<'_> {
    fn eq(&self, other: &&str) -> bool {
        self == *other
    }
}

#[derive(Debug, Clone, Default)]
struct Base {
    bare_used: bool,
    /// Where the search for a free number starts.
    count: u32,
    /// The highest range of used numbers, inclusive: consecutive numbers end up here.
    top: Option<(u32, u32)>,
    /// The used ranges below it, disjoint: start to end.
    below: BTreeMap<u32, u32>,
}

impl Base {
    fn is_used(&self, number: u32) -> bool {
        self.next_free(number) != number
    }

    fn insert(&mut self, number: u32) {
        match &mut self.top {
            None => self.top = Some((number, number)),
            Some((_, end)) if *end + 1 == number => *end = number,
            Some((start, end)) if *end < number => {
                self.below.insert(*start, *end);
                self.top = Some((number, number));
            }
            Some(_) => self.insert_below(number),
        }
    }

    fn insert_below(&mut self, number: u32) {
        let mut start = number;
        let mut end = number;
        let before = self.below.range(..number).next_back();
        if let Some((s, e)) = before.map(|(s, e)| (*s, *e))
            && e + 1 == number
        {
            start = s;
        }
        if let Some(e) = self.below.remove(&(number + 1)) {
            end = e;
        }
        self.below.insert(start, end);
    }

    /// Frees a used number.
    fn remove(&mut self, number: u32) {
        let range = match self.top {
            Some((start, end)) if (start..=end).contains(&number) => {
                self.top = None;
                Some((start, end))
            }
            _ => {
                let range = self.below.range(..=number).next_back();
                let range = range.map(|(start, end)| (*start, *end));
                range.inspect(|(start, _)| {
                    self.below.remove(start);
                })
            }
        };
        let Some((start, end)) = range else {
            return;
        };
        if start < number {
            self.below.insert(start, number - 1);
        }
        if number < end {
            self.below.insert(number + 1, end);
        }
        if self.top.is_none() {
            self.top = self.below.pop_last();
        }
    }

    /// The first free number, starting at `number`.
    fn next_free(&self, number: u32) -> u32 {
        let Some((start, end)) = self.top else {
            return number;
        };
        if number > end {
            return number;
        }
        if number >= start {
            return end + 1;
        }
        let mut free = number;
        // One range may begin where another ends.
        while let Some((_, end)) = self.below.range(..=free).next_back()
            && *end >= free
        {
            free = end + 1;
        }
        if free == start { end + 1 } else { free }
    }

    /// Takes the first free number from `number` on, or from 1 if those are used up.
    fn take(&mut self, number: u32) -> u32 {
        let found = match self.next_free(number) {
            BARE => self.next_free(1),
            found => found,
        };
        self.insert(found);
        found
    }
}

/// An assigned name, with what is needed to revoke it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Taken {
    pub id: NameId,
    /// The former start of the search for a free number.
    former_count: u32,
    /// Whether no name had this base before.
    is_new_base: bool,
}

/// All names of a graph.
#[derive(Debug, Clone, Default)]
pub(crate) struct NameSpace {
    bases: IndexMap<Box<str>, Base, FxBuildHasher>,
    /// The base that was used last; it is often used next.
    last: usize,
}

impl NameSpace {
    pub fn with_capacity(names: usize) -> Self {
        NameSpace {
            bases: IndexMap::with_capacity_and_hasher(names, FxBuildHasher),
            last: 0,
        }
    }

    /// The number of bases; the bases of ids are below it.
    pub fn bases(&self) -> usize {
        self.bases.len()
    }

    /// A free name for a candidate: the candidate itself, or a numbered variant.
    pub fn create(&mut self, candidate: &str) -> Taken {
        let mut text = sanitize(candidate);
        let (stem, given) = split(&text);
        if self.was_last(stem) {
            return self.take(self.last, given, false);
        }
        let length = stem.len();
        match self.bases.raw_entry_mut_v1().from_key(stem) {
            RawEntryMut::Occupied(entry) => {
                let index = entry.index();
                self.take(index, given, false)
            }
            RawEntryMut::Vacant(entry) => {
                let stem = match &mut text {
                    // The sanitized text becomes the key.
                    Cow::Owned(text) => {
                        text.truncate(length);
                        std::mem::take(text).into_boxed_str()
                    }
                    Cow::Borrowed(text) => text[..length].into(),
                };
                let index = entry.index();
                entry.insert(stem, Base::default());
                self.take(index, given, true)
            }
        }
    }

    /// A free name for a name from another graph.
    pub fn create_like(&mut self, name: Name<'_>) -> Taken {
        let (index, is_new) = match self.index_of(name.base) {
            Some(index) => (index, false),
            None => {
                let new = self.bases.insert_full(name.base.into(), Base::default());
                (new.0, true)
            }
        };
        self.take(index, (name.number != BARE).then_some(name.number), is_new)
    }

    /// Revokes the most recently assigned name.
    pub fn give_back(&mut self, taken: Taken) {
        let Taken {
            id,
            former_count,
            is_new_base,
        } = taken;
        if is_new_base {
            self.bases.pop();
            return;
        }
        if let Some((_, base)) = self.bases.get_index_mut(id.base as usize) {
            base.count = former_count;
            match id.number {
                BARE => base.bare_used = false,
                number => base.remove(number),
            }
        }
    }

    fn index_of(&self, stem: &str) -> Option<usize> {
        match self.was_last(stem) {
            true => Some(self.last),
            false => self.bases.get_index_of(stem),
        }
    }

    /// Whether this base was used last.
    fn was_last(&self, stem: &str) -> bool {
        let last = self.bases.get_index(self.last);
        last.is_some_and(|(last, _)| **last == *stem)
    }

    fn take(&mut self, index: usize, given: Option<u32>, is_new_base: bool) -> Taken {
        self.last = index;
        let (stem, base) = self
            .bases
            .get_index_mut(index)
            .expect("the base was found or inserted just now");
        let former_count = base.count;
        let number = match given {
            Some(number) if number != 0 => base.take(number),
            // torch.fx keeps a given `x_0`; if it is taken, numbering continues from the base's
            // count.
            Some(_) if !base.is_used(0) => {
                base.insert(0);
                0
            }
            _ if given.is_none() && !base.bare_used && !is_reserved(stem) => {
                base.bare_used = true;
                BARE
            }
            _ => base.take(base.count + 1),
        };
        if number != BARE {
            base.count = number;
        }
        Taken {
            id: NameId {
                base: u32::try_from(index).expect("names have no more bases than there are nodes"),
                number,
            },
            former_count,
            is_new_base,
        }
    }

    pub fn get(&self, id: NameId) -> Name<'_> {
        let base = self
            .bases
            .get_index(id.base as usize)
            .map_or("", |(base, _)| base);
        Name {
            base,
            number: id.number,
        }
    }

    /// The id of a name, if its base is known.
    pub fn find(&self, name: &str) -> Option<NameId> {
        let (stem, number) = split(name);
        let base = self.bases.get_index_of(stem)?;
        Some(NameId {
            base: u32::try_from(base).ok()?,
            number: number.unwrap_or(BARE),
        })
    }
}

/// Splits a name into base and number: `add_3` is `add` and 3; `foo_1_1` is `foo_1` and 1.
fn split(name: &str) -> (&str, Option<u32>) {
    let digits = name.bytes().rev().take_while(u8::is_ascii_digit).count();
    let (stem, digits) = name.split_at(name.len() - digits);
    if let Some(stem) = stem.strip_suffix('_')
        && !stem.is_empty()
        && let Some(number) = canonical_number(digits)
    {
        return (stem, Some(number));
    }
    (name, None)
}

/// Parses a number in printed form: no leading zeros, and below `BARE`.
fn canonical_number(digits: &str) -> Option<u32> {
    if digits.is_empty() || (digits.len() > 1 && digits.starts_with('0')) {
        return None;
    }
    if !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    digits.parse().ok().filter(|n| *n < BARE)
}

/// The candidate as an identifier in snake case.
fn sanitize(candidate: &str) -> Cow<'_, str> {
    let is_clean = |b: u8| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'_');
    let starts_with_digit = candidate.as_bytes().first().is_some_and(u8::is_ascii_digit);
    if !candidate.is_empty() && !starts_with_digit && candidate.bytes().all(is_clean) {
        return candidate.into();
    }
    let mut text = String::with_capacity(candidate.len() + usize::from(starts_with_digit));
    if starts_with_digit {
        text.push('_');
    }
    let mut previous = b' ';
    for byte in candidate.bytes() {
        match byte {
            b'a'..=b'z' | b'0'..=b'9' | b'_' => text.push(char::from(byte)),
            b'A'..=b'Z' => {
                // `ReLU` becomes `re_lu`, as in torch.fx.
                if previous.is_ascii_lowercase() {
                    text.push('_');
                }
                text.push(char::from(byte.to_ascii_lowercase()));
            }
            // A run of other characters becomes one `_`.
            _ if previous.is_ascii_alphanumeric() || previous == b'_' || text.is_empty() => {
                text.push('_');
            }
            _ => {}
        }
        previous = byte;
    }
    if text.is_empty() {
        text.push_str("_unnamed");
    }
    text.into()
}

/// Whether a text has the form of a Rust identifier; keywords count too.
pub(crate) fn is_identifier(text: &str) -> bool {
    let mut chars = text.chars();
    let starts = |c: char| c == '_' || unicode_ident::is_xid_start(c);
    chars.next().is_some_and(starts) && chars.all(unicode_ident::is_xid_continue)
}

/// An identifier as a Rust name, such as `r#type` for `type`. `None` if the text is not an
/// identifier, or a word that can never be a name.
pub(crate) fn as_name(text: &str) -> Option<Cow<'_, str>> {
    match text {
        _ if !is_identifier(text) => None,
        "self" | "Self" | "super" | "crate" | "_" => None,
        _ if is_reserved(text) => Some(format!("r#{text}").into()),
        _ => Some(text.into()),
    }
}

/// Whether a name cannot be a variable of generated Rust.
pub(crate) fn is_reserved(name: &str) -> bool {
    matches!(
        name,
        "abstract"
            | "as"
            | "async"
            | "await"
            | "become"
            | "box"
            | "break"
            | "const"
            | "continue"
            | "crate"
            | "do"
            | "dyn"
            | "else"
            | "enum"
            | "extern"
            | "false"
            | "final"
            | "fn"
            | "for"
            | "gen"
            | "if"
            | "impl"
            | "in"
            | "let"
            | "loop"
            | "macro"
            | "match"
            | "mod"
            | "move"
            | "mut"
            | "override"
            | "priv"
            | "pub"
            | "ref"
            | "return"
            | "self"
            | "static"
            | "struct"
            | "super"
            | "trait"
            | "true"
            | "try"
            | "type"
            | "typeof"
            | "unsafe"
            | "unsized"
            | "use"
            | "virtual"
            | "where"
            | "while"
            | "yield"
            | "_"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(candidates: &[&str]) -> Vec<String> {
        let mut space = NameSpace::default();
        candidates
            .iter()
            .map(|c| {
                let id = space.create(c).id;
                space.get(id).to_string()
            })
            .collect()
    }

    #[test]
    fn names_are_torchs() {
        assert_eq!(
            names(&["add", "add", "add", "add_1"]),
            ["add", "add_1", "add_2", "add_3"]
        );
        assert_eq!(
            names(&["foo_1_1", "foo_1", "foo_1"]),
            ["foo_1_1", "foo_1", "foo_2"]
        );
        assert_eq!(
            names(&["x.y.z", "3d", "", "ReLU"]),
            ["x_y_z", "_3d", "_unnamed", "re_lu"]
        );
        assert_eq!(
            names(&["HTTPServer", "BatchNorm2d"]),
            ["httpserver", "batch_norm2d"]
        );
        assert_eq!(names(&["type", "type"]), ["type_1", "type_2"]);
        assert_eq!(names(&["foo_7", "foo", "foo"]), ["foo_7", "foo", "foo_8"]);
    }

    #[test]
    fn names_are_equal_to_their_text() {
        let mut space = NameSpace::default();
        let (a, b) = (space.create("add").id, space.create("add").id);
        assert!(space.get(a) == "add" && space.get(b) == "add_1");
        assert!(space.get(b) != "add_01" && space.get(b) != "add");
        assert_eq!(space.find("add_1"), Some(b));
    }
}
