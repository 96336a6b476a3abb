//! The one strict comparator of graphs; it owns what "the same graph as PyTorch's" means.
//!
//! Nodes are compared opcode by opcode, in order. Paths (`call_module`, `get_attr`) are equal exactly, functions by
//! their last name segment, methods and placeholders by name. Edges are equal by position, never by name. Values are
//! equal in type and value. Arguments are first brought into one form by the signature of our callee: what PyTorch
//! passes by keyword and we by position meet under the parameter's name, and a parameter left out has our default.
//! (A default that differs from PyTorch's is therefore not seen where both sides leave the argument out: the numbers
//! show that.) Anything else that may differ is an [`Exception`], passed for that one graph; one that was not needed
//! is a difference.

use std::collections::HashMap;
use std::fmt;

use crate::align::{Pair, align};
pub use crate::exception::Exception;
use crate::golden::{GoldenNode, GraphGolden, Literal};
use crate::ledger::Ledger;
use crate::literals::{differences, last_segment};
pub use crate::numbers::{NumComparison, compare_node_numbers, compare_numbers};

/// One node of our side.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeView {
    /// The opcode, as in the goldens: `placeholder`, `get_attr`, `call_function` ...
    pub op: String,
    /// The node's name, unique in the graph; [`Literal::Node`] refers to it.
    pub name: String,
    /// The argument, path, method or qualified function that the node names.
    pub target: String,
    /// The positional arguments (of a method the receiver first).
    pub args: Vec<Literal>,
    /// The keyword arguments.
    pub kwargs: Vec<(String, Literal)>,
    /// The callee's parameters in the order of `args` (of a method the receiver first, of a module without it);
    /// `None` where it has no known signature: arguments then have to be passed as PyTorch passes them.
    pub params: Option<Vec<ParamView>>,
}

/// One parameter of a callee of our side.
#[derive(Clone, Debug, PartialEq)]
pub struct ParamView {
    /// Its name.
    pub name: String,
    /// Whether ours passes it only by name. (PyTorch may pass it by position all the same.)
    pub keyword_only: bool,
    /// What it is where it is left out; `None` where it cannot be.
    pub default: Option<Literal>,
}

impl From<&GoldenNode> for NodeView {
    fn from(node: &GoldenNode) -> NodeView {
        NodeView {
            op: node.op.clone(),
            name: node.name.clone(),
            target: node.target.clone(),
            args: node.args.clone(),
            kwargs: node.kwargs.clone(),
            params: None,
        }
    }
}

/// What a comparison of graphs found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphComparison {
    /// The golden's name.
    pub golden: String,
    /// Whether there is no difference.
    pub equal: bool,
    /// What differs, in the order of the nodes.
    pub differences: Vec<String>,
    /// The names of the exceptions that were needed, each once.
    pub used: Vec<&'static str>,
}

impl fmt::Display for GraphComparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let used = if self.used.is_empty() {
            "no exceptions".to_owned()
        } else {
            self.used.join(", ")
        };
        if self.equal {
            return write!(f, "{}: the same graph ({used})", self.golden);
        }
        let count = self.differences.len();
        let s = if count == 1 { "" } else { "s" };
        write!(f, "{}: {count} difference{s} ({used}):", self.golden)?;
        for difference in &self.differences {
            write!(f, "\n- {difference}")?;
        }
        Ok(())
    }
}

/// Compares a golden graph with ours, accepting only what `exceptions` name.
#[must_use]
pub fn compare_graphs(
    golden: &GraphGolden,
    ours: &[NodeView],
    exceptions: &[Exception],
) -> GraphComparison {
    let mut found = Vec::new();
    let ledger = Ledger::new(exceptions);
    match &golden.refusal {
        Some(refusal) => found.push(format!(
            "PyTorch refused to trace this ({}: {}), ours has {} nodes",
            refusal.class,
            refusal.message,
            ours.len()
        )),
        None => Comparison::new(&golden.nodes, ours, &ledger, &mut found).run(&mut found),
    }
    for exception in ledger.unused() {
        found.push(format!(
            "the exception {exception} was passed and not needed (or what it names is not there): take it off the list"
        ));
    }
    GraphComparison {
        golden: golden.name.clone(),
        equal: found.is_empty(),
        differences: found,
        used: ledger.used(),
    }
}

struct Comparison<'a> {
    theirs: &'a [GoldenNode],
    ours: &'a [NodeView],
    ledger: &'a Ledger<'a>,
    their_index: HashMap<&'a str, usize>,
    our_index: HashMap<&'a str, usize>,
    pairs: Vec<Pair>,
    /// By position in the golden: our node that stands for it.
    partner: Vec<Option<usize>>,
}

impl<'a> Comparison<'a> {
    fn new(
        theirs: &'a [GoldenNode],
        ours: &'a [NodeView],
        ledger: &'a Ledger<'a>,
        found: &mut Vec<String>,
    ) -> Comparison<'a> {
        let their_index = index(
            theirs.iter().map(|node| node.name.as_str()),
            "PyTorch",
            found,
        );
        let our_index = index(ours.iter().map(|node| node.name.as_str()), "ours", found);
        let mut comparison = Comparison {
            theirs,
            ours,
            ledger,
            their_index,
            our_index,
            pairs: Vec::new(),
            partner: vec![None; theirs.len()],
        };
        comparison.pair_up();
        comparison
    }

    /// Leaves out what exceptions leave out and pairs the rest.
    fn pair_up(&mut self) {
        let mut left_out_theirs = vec![false; self.theirs.len()];
        let mut left_out_ours = vec![false; self.ours.len()];
        let mut repeats = Vec::new();
        for exception in self.ledger.all() {
            match exception {
                Exception::OnlyInTorch { node, .. } => {
                    if let Some(&i) = self.their_index.get(node)
                        && self.ledger.allows(exception)
                    {
                        left_out_theirs[i] = true;
                    }
                }
                Exception::OnlyInRust { node, .. } => {
                    if let Some(&j) = self.our_index.get(node)
                        && self.ledger.allows(exception)
                    {
                        left_out_ours[j] = true;
                    }
                }
                Exception::RepeatedInTorch { node, first, .. } => {
                    if let (Some(&i), Some(&first)) =
                        (self.their_index.get(node), self.their_index.get(first))
                        && first < i
                        && repeats_it(&self.theirs[i], &self.theirs[first])
                        && self.ledger.allows(exception)
                    {
                        left_out_theirs[i] = true;
                        repeats.push((i, first));
                    }
                }
                _ => {}
            }
        }
        let kept = |left_out: &[bool]| -> Vec<usize> {
            (0..left_out.len()).filter(|&i| !left_out[i]).collect()
        };
        let (rows, columns) = (kept(&left_out_theirs), kept(&left_out_ours));
        let hints = self.hints();
        self.pairs = align(rows.len(), columns.len(), |row, column| {
            let (i, j) = (rows[row], columns[column]);
            let (theirs, ours) = (&self.theirs[i], &self.ours[j]);
            let same = same_callee(theirs, ours)
                || self
                    .ledger
                    .any(|exception| renames(exception, theirs, ours));
            match (same, hints.0[i] == hints.1[j]) {
                (false, _) => 0,
                (true, false) => 2,
                (true, true) => 3,
            }
        });
        for pair in &mut self.pairs {
            match pair {
                Pair::Both(i, j) => {
                    (*i, *j) = (rows[*i], columns[*j]);
                    self.partner[*i] = Some(*j);
                }
                Pair::Theirs(i) => *i = rows[*i],
                Pair::Ours(j) => *j = columns[*j],
            }
        }
        repeats.sort_unstable();
        for (i, first) in repeats {
            self.partner[i] = self.partner[first];
        }
    }

    /// A short picture of what each node uses, to tell apart calls of one function when nodes are missing.
    fn hints(&self) -> (Vec<String>, Vec<String>) {
        let theirs = self.theirs.iter().map(|node| {
            picture(&node.args, &node.kwargs, |name| {
                self.their_index
                    .get(name)
                    .map(|&i| last_segment(&self.theirs[i].target))
            })
        });
        let ours = self.ours.iter().map(|node| {
            picture(&node.args, &node.kwargs, |name| {
                self.our_index
                    .get(name)
                    .map(|&j| last_segment(&self.ours[j].target))
            })
        });
        (theirs.collect(), ours.collect())
    }

    fn run(&self, found: &mut Vec<String>) {
        for pair in &self.pairs {
            match *pair {
                Pair::Theirs(i) => found.push(format!(
                    "node {i} of PyTorch is missing here: {}",
                    self.their_line(i)
                )),
                Pair::Ours(j) => found.push(format!(
                    "our node {j} is not in PyTorch's graph: {}",
                    self.our_line(j)
                )),
                Pair::Both(i, j) => {
                    let faults = self.node_faults(i, j);
                    if faults.is_empty() {
                        continue;
                    }
                    let place = if i == j {
                        format!("node {i}")
                    } else {
                        format!("node {i} (ours {j})")
                    };
                    for fault in faults {
                        found.push(format!(
                            "{place}: {fault}\n    PyTorch: {}\n    ours:    {}",
                            self.their_line(i),
                            self.our_line(j)
                        ));
                    }
                }
            }
        }
    }

    fn their_line(&self, i: usize) -> String {
        let node = &self.theirs[i];
        line(&node.op, &node.name, &node.target, &node.args, &node.kwargs)
    }

    fn our_line(&self, j: usize) -> String {
        let node = &self.ours[j];
        line(&node.op, &node.name, &node.target, &node.args, &node.kwargs)
    }

    fn node_faults(&self, i: usize, j: usize) -> Vec<String> {
        let (theirs, ours) = (&self.theirs[i], &self.ours[j]);
        let mut faults = Vec::new();
        let same = same_callee(theirs, ours)
            || self
                .ledger
                .take(|exception| renames(exception, theirs, ours).then_some(()))
                .is_some();
        if !same {
            if theirs.op != ours.op {
                return vec![format!(
                    "the opcode differs: PyTorch has {}, ours {}",
                    theirs.op, ours.op
                )];
            }
            let what = match theirs.op.as_str() {
                "placeholder" => "the argument's name",
                "call_function" => "the function",
                "call_method" => "the method",
                _ => "the path",
            };
            faults.push(format!(
                "{what} differs: PyTorch has {}, ours {}",
                theirs.target, ours.target
            ));
            // Another callee has another signature: its arguments say nothing.
            if matches!(theirs.op.as_str(), "call_function" | "call_method") {
                return faults;
            }
        }
        self.argument_faults(theirs, ours, &mut faults);
        faults
    }

    fn argument_faults(&self, theirs: &GoldenNode, ours: &NodeView, faults: &mut Vec<String>) {
        let params = ours.params.as_deref();
        let our_arguments = our_arguments(ours, faults);
        let their_arguments = self.their_arguments(theirs, ours, faults);
        let mut order: Vec<&Key<'_>> = their_arguments.iter().map(|(key, _)| key).collect();
        for (key, _) in &our_arguments {
            if !order.contains(&key) {
                order.push(key);
            }
        }
        let get = |arguments: &'_ [(Key<'_>, Literal)], key: &Key<'_>| -> Option<Literal> {
            let mut all = arguments.iter();
            all.find(|(other, _)| other == key)
                .map(|(_, value)| value.clone())
        };
        let same_node = |theirs: &str, ours: &str| self.same_node(theirs, ours);
        for key in order {
            let place = key.to_string();
            let default = params.and_then(|params| {
                let param = params.iter().find(|param| key.is(&param.name))?;
                param.default.as_ref()
            });
            match (
                get(&their_arguments, key),
                get(&our_arguments, key),
                default,
            ) {
                (Some(a), Some(b), _) => {
                    faults.extend(differences(&a, &b, &place, &same_node, self.ledger));
                }
                (Some(a), None, Some(default)) => {
                    if !differences(&a, default, &place, &same_node, self.ledger).is_empty() {
                        faults.push(format!(
                            "{place}: PyTorch passes {} {a}, ours leaves it out (its default is {} {default})",
                            a.kind(),
                            default.kind(),
                        ));
                    }
                }
                (None, Some(b), Some(default)) => {
                    if b != *default {
                        faults.push(format!(
                            "{place}: ours passes {b}, PyTorch leaves it out (our default is {default})"
                        ));
                    }
                }
                (Some(a), None, None) => {
                    let fixed = theirs.op == "placeholder"
                        && self.ledger.allows(&Exception::PythonDefaultValue);
                    if !fixed {
                        faults.push(format!("{place}: PyTorch passes {a}, ours does not"));
                    }
                }
                (None, Some(b), None) => {
                    faults.push(format!("{place}: ours passes {b}, PyTorch does not"));
                }
                (None, None, _) => {}
            }
        }
    }

    /// The golden's arguments under the keys of our signature.
    fn their_arguments<'n>(
        &self,
        theirs: &'n GoldenNode,
        ours: &'n NodeView,
        faults: &mut Vec<String>,
    ) -> Vec<(Key<'n>, Literal)> {
        let params = ours.params.as_deref();
        let callee = last_segment(&theirs.target);
        let mut arguments: Vec<(Key<'n>, Literal)> = Vec::new();
        let flattened = match theirs.args.as_slice() {
            [Literal::List(items)] if theirs.op == "output" && theirs.args != ours.args => {
                items.first().filter(|_| items.len() == 1)
            }
            _ => None,
        };
        let positional = match variadic(theirs, ours) {
            None if flattened.is_some() && self.ledger.allows(&Exception::FlattenedOutput) => {
                flattened.cloned().into_iter().collect()
            }
            Some(gathered) if self.ledger.allows(&Exception::VariadicAsOneSequence) => gathered,
            _ => theirs.args.clone(),
        };
        if let Some(params) = params
            && positional.len() > params.len()
        {
            let names: Vec<&str> = params.iter().map(|param| param.name.as_str()).collect();
            faults.push(format!(
                "PyTorch passes {} positional arguments, our signature has {} parameters ({})",
                positional.len(),
                params.len(),
                names.join(", ")
            ));
        }
        let room = params.map_or(usize::MAX, <[ParamView]>::len);
        for (i, value) in positional.into_iter().enumerate().take(room) {
            arguments.push((Key::of(i, params), value));
        }
        let known = |name: &str| match params {
            Some(params) => params.iter().any(|param| param.name == name),
            None => ours.kwargs.iter().any(|(kwarg, _)| kwarg == name),
        };
        for (name, value) in &theirs.kwargs {
            let mut name = name.as_str();
            if !known(name)
                && let Some(renamed) = self.ledger.take(|exception| match exception {
                    Exception::ArgumentRenamed {
                        callee: whose,
                        theirs,
                        ours,
                        ..
                    } if (*whose == callee) && *theirs == name && known(ours) => Some(*ours),
                    _ => None,
                })
            {
                name = renamed;
            }
            let has_place = known(name);
            if !has_place && self.only_python(callee, &theirs.target, name, value) {
                continue;
            }
            let key = Key::Name(name);
            if !has_place && params.is_some() {
                faults.push(format!(
                    "PyTorch passes the keyword {name}={value}, our signature has no such parameter"
                ));
            } else if arguments.iter().any(|(other, _)| *other == key) {
                faults.push(format!(
                    "PyTorch passes {name}={value} by keyword, but our signature already has a positional argument there"
                ));
            } else {
                arguments.push((key, value.clone()));
            }
        }
        arguments
    }

    /// Whether an exception says that this keyword exists only in Python.
    fn only_python(&self, callee: &str, target: &str, name: &str, value: &Literal) -> bool {
        self.ledger
            .take(|exception| {
                let fits = match exception {
                    Exception::PythonInplaceFlag => {
                        name == "inplace" && *value == Literal::Bool(false)
                    }
                    Exception::PythonStacklevel => {
                        name == "_stacklevel" && matches!(value, Literal::Int(_))
                    }
                    Exception::NoneDtype => name == "dtype" && *value == Literal::None,
                    Exception::PythonOnlyArgument {
                        callee: whose,
                        name: which,
                        value: one,
                        ..
                    } => (*whose == callee || *whose == target) && *which == name && one == value,
                    _ => false,
                };
                fits.then_some(())
            })
            .is_some()
    }

    fn same_node(&self, theirs: &str, ours: &str) -> Result<(), String> {
        let Some(&i) = self.their_index.get(theirs) else {
            return Err(format!(
                "PyTorch uses %{theirs}, which its graph does not have"
            ));
        };
        let Some(&j) = self.our_index.get(ours) else {
            return Err(format!("ours uses %{ours}, which our graph does not have"));
        };
        match self.partner[i] {
            Some(partner) if partner == j => Ok(()),
            Some(partner) => Err(format!(
                "the edge differs: PyTorch uses %{theirs} (node {i}), which here is %{} (node {partner}), ours uses %{ours} (node {j})",
                self.ours[partner].name
            )),
            None => Err(format!(
                "the edge differs: PyTorch uses %{theirs} (node {i}), which has no counterpart here, ours uses %{ours} (node {j})"
            )),
        }
    }
}

/// Under what an argument is looked up: the parameter's name, or its position where there is no name.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Key<'a> {
    Name(&'a str),
    Position(usize),
}

impl<'a> Key<'a> {
    fn of(i: usize, params: Option<&'a [ParamView]>) -> Key<'a> {
        match params.and_then(|params| params.get(i)) {
            Some(param) => Key::Name(&param.name),
            None => Key::Position(i),
        }
    }

    fn is(&self, name: &str) -> bool {
        matches!(self, Key::Name(own) if *own == name)
    }
}

impl fmt::Display for Key<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Key::Name(name) => write!(f, "argument {name}"),
            Key::Position(i) => write!(f, "argument {i}"),
        }
    }
}

/// Our arguments under the keys of our signature, which they have to keep.
fn our_arguments<'n>(ours: &'n NodeView, faults: &mut Vec<String>) -> Vec<(Key<'n>, Literal)> {
    let params = ours.params.as_deref();
    let mut arguments: Vec<(Key<'n>, Literal)> = Vec::new();
    for (i, value) in ours.args.iter().enumerate() {
        if let Some(params) = params {
            match params.get(i) {
                None => {
                    faults.push(format!(
                        "ours passes argument {i} ({value}), its own signature has {} parameters",
                        params.len()
                    ));
                    continue;
                }
                Some(param) if param.keyword_only => faults.push(format!(
                    "ours passes {} ({value}) by position, its own signature has it by keyword only",
                    param.name
                )),
                Some(_) => {}
            }
        }
        arguments.push((Key::of(i, params), value.clone()));
    }
    for (name, value) in &ours.kwargs {
        let key = Key::Name(name);
        if params.is_some_and(|params| params.iter().all(|param| param.name != *name)) {
            faults.push(format!(
                "ours passes the keyword {name}={value}, its own signature has no such parameter"
            ));
        } else if arguments.iter().any(|(other, _)| *other == key) {
            faults.push(format!("ours passes {name} twice"));
        } else {
            arguments.push((key, value.clone()));
        }
    }
    arguments
}

/// PyTorch's positional arguments with the last ones gathered into one sequence, where ours ends with one.
fn variadic(theirs: &GoldenNode, ours: &NodeView) -> Option<Vec<Literal>> {
    let place = ours.args.len().checked_sub(1)?;
    let (our_count, kind): (usize, fn(Vec<Literal>) -> Literal) = match &ours.args[place] {
        Literal::List(items) => (items.len(), Literal::List),
        Literal::Tuple(items) => (items.len(), Literal::Tuple),
        Literal::Size(items) => (items.len(), Literal::Size),
        _ => return None,
    };
    let (before, rest) = theirs.args.split_at_checked(place)?;
    let is_sequence = |value: &Literal| {
        matches!(
            value,
            Literal::List(_) | Literal::Tuple(_) | Literal::Size(_)
        )
    };
    if rest.first().is_none_or(is_sequence) {
        return None;
    }
    let many = match theirs.op.as_str() {
        "call_method" => rest.len() == our_count || rest.len() > 1,
        "call_function" => rest.len() > 1,
        _ => false,
    };
    if !many {
        return None;
    }
    let mut gathered = before.to_vec();
    gathered.push(kind(rest.to_vec()));
    Some(gathered)
}

/// Whether two nodes have the same opcode and callee, no exception needed.
fn same_callee(theirs: &GoldenNode, ours: &NodeView) -> bool {
    theirs.op == ours.op
        && match theirs.op.as_str() {
            "output" => true,
            "call_function" | "call_method" => {
                last_segment(&theirs.target) == last_segment(&ours.target)
            }
            _ => theirs.target == ours.target,
        }
}

/// Whether this exception makes the callees the same.
fn renames(exception: &Exception, theirs: &GoldenNode, ours: &NodeView) -> bool {
    let (their_op, our_op, their_name, our_name) = match exception {
        Exception::PythonReservedName => {
            let numbered = theirs
                .target
                .rsplit_once('_')
                .is_some_and(|(base, number)| base == ours.target && number.parse::<u32>().is_ok());
            return theirs.op == "placeholder" && ours.op == "placeholder" && numbered;
        }
        Exception::PlaceholderRenamed { theirs, ours, .. } => {
            ("placeholder", "placeholder", theirs, ours)
        }
        Exception::FunctionRenamed { theirs, ours, .. } => {
            ("call_function", "call_function", theirs, ours)
        }
        Exception::MethodRenamed { theirs, ours, .. } => {
            ("call_method", "call_method", theirs, ours)
        }
        Exception::MethodForFunction { theirs, ours, .. } => {
            ("call_function", "call_method", theirs, ours)
        }
        Exception::FunctionForMethod { theirs, ours, .. } => {
            ("call_method", "call_function", theirs, ours)
        }
        _ => return false,
    };
    theirs.op == their_op
        && ours.op == our_op
        && last_segment(&theirs.target) == *their_name
        && last_segment(&ours.target) == *our_name
}

fn repeats_it(node: &GoldenNode, first: &GoldenNode) -> bool {
    node.op == first.op
        && node.target == first.target
        && node.args == first.args
        && node.kwargs == first.kwargs
}

fn index<'a>(
    names: impl Iterator<Item = &'a str>,
    whose: &str,
    found: &mut Vec<String>,
) -> HashMap<&'a str, usize> {
    let mut index = HashMap::new();
    for (i, name) in names.enumerate() {
        if let Some(before) = index.insert(name, i) {
            found.push(format!(
                "{whose}: nodes {before} and {i} are both named %{name}"
            ));
        }
    }
    index
}

fn picture<'a>(
    args: &'a [Literal],
    kwargs: &'a [(String, Literal)],
    target_of: impl Fn(&str) -> Option<&'a str>,
) -> String {
    let mut picture = String::new();
    for value in args.iter().chain(kwargs.iter().map(|(_, value)| value)) {
        value.for_each_node(&mut |name| {
            picture.push_str(target_of(name).unwrap_or("?"));
            picture.push(' ');
        });
    }
    picture
}

fn line(
    op: &str,
    name: &str,
    target: &str,
    args: &[Literal],
    kwargs: &[(String, Literal)],
) -> String {
    let mut shown: Vec<String> = args.iter().map(Literal::to_string).collect();
    shown.extend(kwargs.iter().map(|(key, value)| format!("{key}={value}")));
    format!("%{name} = {op} {target}({})", shown.join(", "))
}
