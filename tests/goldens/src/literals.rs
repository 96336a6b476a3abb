//! Comparing two argument values; it owns that values are equal only in type and value, and nodes only by position.

use crate::exception::Exception;
use crate::golden::Literal;
use crate::ledger::Ledger;

/// Says whether two nodes, named in the golden and in ours, are the same one; if not, what is wrong.
pub(crate) type SameNode<'a> = dyn Fn(&str, &str) -> Result<(), String> + 'a;

/// All that differs between a golden's value and ours; `place` is the way to them, such as `argument 1[0]`.
pub(crate) fn differences(
    theirs: &Literal,
    ours: &Literal,
    place: &str,
    same_node: &SameNode<'_>,
    ledger: &Ledger<'_>,
) -> Vec<String> {
    let mut found = Vec::new();
    walk(theirs, ours, place, same_node, ledger, &mut found);
    found
}

fn walk(
    theirs: &Literal,
    ours: &Literal,
    place: &str,
    same_node: &SameNode<'_>,
    ledger: &Ledger<'_>,
    found: &mut Vec<String>,
) {
    let mut items = |a: &[Literal], b: &[Literal]| {
        if a.len() != b.len() {
            found.push(format!(
                "{place}: PyTorch has {} elements, ours {}: {theirs} against {ours}",
                a.len(),
                b.len()
            ));
            return;
        }
        for (i, (a, b)) in a.iter().zip(b).enumerate() {
            walk(a, b, &format!("{place}[{i}]"), same_node, ledger, found);
        }
    };
    match (theirs, ours) {
        (Literal::Node(a), Literal::Node(b)) => {
            if let Err(problem) = same_node(a, b) {
                found.push(format!("{place}: {problem}"));
            }
        }
        (Literal::List(a), Literal::List(b))
        | (Literal::Tuple(a), Literal::Tuple(b))
        | (Literal::Size(a), Literal::Size(b)) => items(a, b),
        (Literal::Tuple(a), Literal::List(b)) if ledger.allows(&Exception::ListForTuple) => {
            items(a, b);
        }
        (Literal::List(a), Literal::Tuple(b)) if ledger.allows(&Exception::TupleForList) => {
            items(a, b);
        }
        (Literal::Slice(a), Literal::Slice(b)) => {
            for ((a, b), part) in a.iter().zip(b.iter()).zip(["start", "stop", "step"]) {
                walk(a, b, &format!("{place}.{part}"), same_node, ledger, found);
            }
        }
        (Literal::Dict(a), Literal::Dict(b)) => {
            let keys = |entries: &[(Literal, Literal)]| -> Vec<String> {
                entries.iter().map(|(key, _)| key.to_string()).collect()
            };
            let (their_keys, our_keys) = (keys(a), keys(b));
            if their_keys != our_keys {
                found.push(format!(
                    "{place}: PyTorch's keys are {}, ours {}",
                    their_keys.join(", "),
                    our_keys.join(", ")
                ));
                return;
            }
            for (((a_key, a), (b_key, b)), key) in a.iter().zip(b).zip(&their_keys) {
                let key_place = format!("key {key} of {place}");
                walk(a_key, b_key, &key_place, same_node, ledger, found);
                walk(a, b, &format!("{place}[{key}]"), same_node, ledger, found);
            }
        }
        (Literal::Function(a), Literal::Function(b)) if last_segment(a) == last_segment(b) => {}
        (Literal::DType(a), Literal::DType(b)) if last_segment(a) == last_segment(b) => {}
        (Literal::Int(a), Literal::Float(b))
            if *a as f64 == *b && ledger.allows(&Exception::IntLiteralForFloatParameter) => {}
        (a, b) if a == b => {}
        (Literal::Str(a), Literal::Str(b)) if same_text(a, b, same_node) => {}
        (a, b) if a.kind() == b.kind() => {
            found.push(format!("{place}: PyTorch has {a}, ours {b}"));
        }
        (a, b) => found.push(format!(
            "{place}: PyTorch has the {} {a}, ours the {} {b}",
            a.kind(),
            b.kind()
        )),
    }
}

/// Whether two texts are the same but for the names of nodes that they show, as `Proxy(getitem_2)`.
fn same_text(theirs: &str, ours: &str, same_node: &SameNode<'_>) -> bool {
    let (mut a, mut b) = (theirs.split("Proxy("), ours.split("Proxy("));
    if a.next() != b.next() {
        return false;
    }
    loop {
        match (a.next(), b.next()) {
            (None, None) => return true,
            (Some(a), Some(b)) => match (a.split_once(')'), b.split_once(')')) {
                (Some((a, a_rest)), Some((b, b_rest)))
                    if a_rest == b_rest && same_node(a, b).is_ok() => {}
                _ => return false,
            },
            _ => return false,
        }
    }
}

/// The last segment of a qualified name: `add` of `operator.add`, `fx_core::operator::add` and `a::add::<f32>`.
pub(crate) fn last_segment(path: &str) -> &str {
    let mut path = path.trim();
    if path.ends_with('>') {
        let mut depth = 0usize;
        for (i, byte) in path.bytes().enumerate().rev() {
            match byte {
                b'>' => depth += 1,
                b'<' => depth = depth.saturating_sub(1),
                _ => {}
            }
            if depth == 0 {
                path = path[..i].trim_end_matches(':');
                break;
            }
        }
    }
    path.rsplit([':', '.']).next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::{last_segment, same_text};

    #[test]
    fn texts_name_nodes() {
        let partner = |a: &str, b: &str| {
            let same = (a, b) == ("getattr_2", "getattr_1");
            if same { Ok(()) } else { Err(String::new()) }
        };
        let same = |a: &str, b: &str| same_text(a, b, &partner);
        assert!(same("got Proxy(getattr_2)!", "got Proxy(getattr_1)!"));
        assert!(!same("got Proxy(getattr_2)!", "got Proxy(getattr_1)?"));
        assert!(!same("got Proxy(getattr_2)", "got Proxy(x)"));
        assert!(!same("got Proxy(getattr_2)", "got"));
        assert!(!same("one", "other"));
    }

    #[test]
    fn last_segments() {
        for (path, last) in [
            ("operator.add", "add"),
            ("fx_core::operator::add", "add"),
            ("relu", "relu"),
            ("a::double::<f32>", "double"),
            ("a::double<b::C<d::E>>", "double"),
            ("torch._C._nn.gelu", "gelu"),
        ] {
            assert_eq!(last_segment(path), last, "{path}");
        }
    }
}
