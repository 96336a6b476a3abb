//! Parsing the printed form of a graph: `text.parse::<Graph>()` undoes `graph.to_string()`.

mod text;

use std::borrow::Cow;
use std::str::FromStr;
use std::sync::Arc;

use rustc_hash::FxHashSet;

use self::text::{Text, excerpt, is_word};
use super::argument::{Args, Argument, Kwargs, MAX_ARGUMENT_DEPTH};
use super::graph::Graph;
use super::op::{Op, Opcode};
use super::places::Site;
use super::registry;
use crate::error::{Error, Result};
use crate::location::SourceLocation;
use crate::submit::REGISTRY_HINT;
use crate::value::device::Device;
use crate::value::dtype::DType;
use crate::value::handle::NodeId;

/// Parses the printed form; nodes keep their names, and their source location is their line in the
/// text.
///
/// Spaces between tokens, blank lines and the kind of line endings do not matter. A node may only
/// use nodes of earlier lines, and every function must be registered in a linked crate.
///
/// ```
/// let text = "\
/// graph():
///     %x : [num_users=1] = placeholder[target=x]
///     %mul : [num_users=1] = call_function[target=fx_core::operator::mul](args = (%x, 2.0), kwargs = {})
///     return %mul";
/// let graph: fx_core::ir::Graph = text.parse()?;
/// assert_eq!(graph.to_string(), text);
/// # Ok::<(), fx_core::Error>(())
/// ```
impl FromStr for Graph {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        // One node per line.
        let lines = text.bytes().filter(|byte| *byte == b'\n').count();
        let mut graph = Graph::with_capacity(lines);
        graph.places.reserve(lines);
        let mut parser = Parser {
            text: Text::new(text),
            graph,
            last: None,
            current: "",
            nodes: Vec::with_capacity(lines),
            returns: Vec::new(),
        };
        parser.header()?;
        while parser.text.next_line() {
            parser.line()?;
        }
        parser.finish()
    }
}

const NUM_USERS: &str = "[num_users=";

/// A parsed node, and the number of users that the text states.
struct Counted {
    id: NodeId,
    users: usize,
    at: usize,
}

/// A `return` line. Its node has no name in the text, so it is created after all other names are
/// taken.
struct Returned {
    args: Args,
    location: SourceLocation,
    /// The number of nodes read before it.
    place: usize,
}

struct Parser<'t> {
    text: Text<'t>,
    graph: Graph,
    /// The node of the previous line.
    last: Option<(&'t str, NodeId)>,
    /// The name of the node on the current line.
    current: &'t str,
    nodes: Vec<Counted>,
    returns: Vec<Returned>,
}

impl<'t> Parser<'t> {
    // ---- lines ---------------------------------------------------------------------------------

    fn header(&mut self) -> Result<()> {
        self.text.next_line();
        self.text.expect("graph():")?;
        self.text.line_end()
    }

    fn line(&mut self) -> Result<()> {
        self.text.blanks();
        let start = self.text.at();
        let (line, column) = self.text.position(start);
        let location = SourceLocation {
            file: Cow::Borrowed("<graph>"),
            line,
            column,
        };
        if self.text.word_at(start) == "return" {
            self.text.skip("return".len());
            return self.returned(location);
        }
        if !self.text.eat("%") {
            return Err(self.text.expected("a node, `%name : ..`, or `return`"));
        }
        let name = self.text.word("a name")?;
        self.current = name;
        self.text.expect(":")?;
        let ty = self.type_expr()?;
        self.text.expect(NUM_USERS)?;
        let at = self.text.at();
        let users = self.num_users()?;
        self.text.expect("]")?;
        self.text.expect("=")?;
        let op = self.op()?;
        let (args, kwargs) = self.inputs(&op)?;
        self.text.line_end()?;
        let id = self
            .graph
            .insert(op, args, kwargs, Some(name), Site::Kept(&location))
            .map_err(|error| self.text.error(start, error))?;
        let given = self.graph.node(id)?.name();
        if given != name && self.graph.find_name(name).is_some() {
            let found = format!("`%{name}` again: two nodes are named %{name}");
            return Err(self.text.wrong(start, "a new name", found));
        }
        if given != name {
            let found = format!("{}, which would become %{given}", excerpt(name));
            return Err(self
                .text
                .wrong(start + 1, "a name that a Rust variable can have", found));
        }
        if let Some(ty) = ty {
            self.graph.node_mut(id)?.set_type_expr(Some(&ty));
        }
        self.last = Some((name, id));
        self.nodes.push(Counted { id, users, at });
        Ok(())
    }

    fn returned(&mut self, location: SourceLocation) -> Result<()> {
        self.current = "";
        let mut args = Args::new();
        self.text.blanks();
        while !self.text.rest().is_empty() {
            args.push(self.argument(0)?);
            self.text.blanks();
            if !self.text.eat(",") && !self.text.rest().is_empty() {
                return Err(self.text.expected("`,` or the end of the line"));
            }
        }
        self.returns.push(Returned {
            args,
            location,
            place: self.nodes.len(),
        });
        Ok(())
    }

    /// Creates the nodes of the `return` lines and checks the numbers of users in the text.
    fn finish(mut self) -> Result<Graph> {
        for returned in std::mem::take(&mut self.returns) {
            let Returned {
                args,
                location,
                place,
            } = returned;
            let (kwargs, site) = (Kwargs::new(), Site::Kept(&location));
            match self.nodes.get(place) {
                Some(next) => {
                    let mut point = self.graph.inserting_before(next.id)?;
                    point.insert(Op::Output, args, kwargs, None, site)?;
                }
                None => {
                    self.graph.insert(Op::Output, args, kwargs, None, site)?;
                }
            }
        }
        for Counted { id, users, at } in &self.nodes {
            let node = self.graph.node(*id)?;
            let real = node.num_users();
            if real != *users {
                let expected = format!("`{real}`, as many users as %{} has", node.name());
                return Err(self.text.wrong(*at, expected, format_args!("`{users}`")));
            }
        }
        Ok(self.graph)
    }

    // ---- parts of a node -----------------------------------------------------------------------

    fn type_expr(&mut self) -> Result<Option<Cow<'t, str>>> {
        self.text.blanks();
        let rest = self.text.rest();
        if rest.starts_with('"') {
            return Ok(Some(self.text.string()?.into()));
        }
        let Some(length) = rest.find(NUM_USERS) else {
            return Err(self
                .text
                .expected(format_args!("a type or `{NUM_USERS}`, then the rest")));
        };
        self.text.skip(length);
        let ty = rest[..length].trim_end_matches([' ', '\t']);
        Ok((!ty.is_empty()).then_some(ty.into()))
    }

    fn num_users(&mut self) -> Result<usize> {
        let at = self.text.at();
        let word = self.text.word("a number of users")?;
        match word.parse() {
            Ok(users) => Ok(users),
            Err(_) => Err(self.text.wrong(at, "a number of users", excerpt(word))),
        }
    }

    fn op(&mut self) -> Result<Op> {
        const KNOWN: &str =
            "an opcode (placeholder, get_attr, call_function, call_method, call_module or output)";
        self.text.blanks();
        let start = self.text.at();
        let word = self.text.word(KNOWN)?;
        let Some(opcode) = Opcode::named(word) else {
            return Err(self.text.wrong(start, KNOWN, excerpt(word)));
        };
        self.text.expect("[target=")?;
        let start = self.text.at();
        let target = self.target()?;
        self.text.expect("]")?;
        Ok(match opcode {
            Opcode::Placeholder => Op::Placeholder(target.into()),
            Opcode::GetAttr => Op::GetAttr(target.into()),
            Opcode::CallMethod => {
                registry::open();
                Op::CallMethod(target.into())
            }
            Opcode::CallModule => Op::CallModule(target.into()),
            Opcode::CallFunction => match registry::function(&target) {
                Ok(Some(function)) => Op::CallFunction(function),
                Ok(None) => {
                    let found = format!(
                        "{}, which no crate of this program registers: link its crate in (`use its_crate as _;`){REGISTRY_HINT}",
                        excerpt(&target)
                    );
                    return Err(self.text.wrong(start, "a registered function", found));
                }
                Err(error) => return Err(self.text.error(start, error)),
            },
            Opcode::Output if target == "output" => Op::Output,
            Opcode::Output => return Err(self.text.wrong(start, "`output`", excerpt(&target))),
        })
    }

    /// A target: quoted, or everything up to `]`.
    fn target(&mut self) -> Result<Cow<'t, str>> {
        let rest = self.text.rest();
        if rest.starts_with('"') {
            return Ok(self.text.string()?.into());
        }
        let length = rest.find(']').unwrap_or(rest.len());
        self.text.skip(length);
        Ok(rest[..length].into())
    }

    fn inputs(&mut self, op: &Op) -> Result<(Args, Kwargs)> {
        let (mut args, mut kwargs) = (Args::new(), Kwargs::new());
        self.text.blanks();
        if matches!(op, Op::Placeholder(_) | Op::GetAttr(_)) && self.text.rest().is_empty() {
            return Ok((args, kwargs));
        }
        self.text.expect("(")?;
        self.text.blanks();
        if matches!(op, Op::Placeholder(_)) && self.text.eat("default") {
            self.text.expect("=")?;
            args.push(self.argument(0)?);
            self.text.expect(")")?;
            return Ok((args, kwargs));
        }
        self.text.expect("args")?;
        self.text.expect("=")?;
        self.text.expect("(")?;
        self.items(")", true, &mut |parser| {
            args.push(parser.argument(0)?);
            Ok(())
        })?;
        self.text.expect(",")?;
        self.text.expect("kwargs")?;
        self.text.expect("=")?;
        self.text.expect("{")?;
        let mut known = FxHashSet::default();
        self.items("}", false, &mut |parser| {
            let start = parser.text.at();
            let key: Arc<str> = match parser.text.rest().starts_with('"') {
                true => parser.text.string()?.into(),
                false => parser.text.word("a keyword")?.into(),
            };
            if !known.insert(key.clone()) {
                let found = format!("{} again", excerpt(&key));
                return Err(parser.text.wrong(start, "a new keyword", found));
            }
            parser.text.expect(":")?;
            kwargs.push((key, parser.argument(0)?));
            Ok(())
        })?;
        self.text.expect(")")?;
        Ok((args, kwargs))
    }

    // ---- arguments -----------------------------------------------------------------------------

    /// Calls `one` for every item up to `close`; a one-item tuple needs its comma.
    fn items(
        &mut self,
        close: &str,
        tuple: bool,
        one: &mut dyn FnMut(&mut Self) -> Result<()>,
    ) -> Result<()> {
        let (mut count, mut comma) = (0usize, true);
        loop {
            self.text.blanks();
            if (count != 1 || comma || !tuple) && self.text.eat(close) {
                return Ok(());
            }
            if !comma {
                return Err(match tuple && count == 1 {
                    true => self.text.expected("`,`"),
                    false => self.text.expected(format_args!("`,` or `{close}`")),
                });
            }
            one(self)?;
            count += 1;
            self.text.blanks();
            comma = self.text.eat(",");
        }
    }

    fn list(&mut self, close: &str, depth: usize) -> Result<Arc<Vec<Argument>>> {
        let mut items = Vec::new();
        self.items(close, close == ")", &mut |parser| {
            items.push(parser.argument(depth)?);
            Ok(())
        })?;
        Ok(Arc::new(items))
    }

    fn argument(&mut self, depth: usize) -> Result<Argument> {
        self.text.blanks();
        if depth > MAX_ARGUMENT_DEPTH {
            let most = format!("at most {MAX_ARGUMENT_DEPTH} levels of arguments");
            return Err(self.text.wrong(self.text.at(), most, "one more"));
        }
        let next = self.text.rest().chars().next();
        match next {
            Some('"') => return self.text.string().map(Argument::from),
            Some('-' | '0'..='9') => return self.number(),
            Some(c) if is_word(c) => return self.named(depth),
            _ => {}
        }
        if self.text.eat("%") {
            return self.reference();
        }
        if self.text.eat("[") {
            return self.list("]", depth + 1).map(Argument::List);
        }
        if self.text.eat("(") {
            return self.list(")", depth + 1).map(Argument::Tuple);
        }
        if self.text.eat("{") {
            let mut items = Vec::new();
            self.items("}", false, &mut |parser| {
                let key = parser.text.string()?.into();
                parser.text.expect(":")?;
                items.push((key, parser.argument(depth + 1)?));
                Ok(())
            })?;
            return Ok(Argument::Dict(Arc::new(items)));
        }
        if self.text.eat("...") {
            return Ok(Argument::Ellipsis);
        }
        Err(self.text.expected("a value"))
    }

    fn reference(&mut self) -> Result<Argument> {
        let start = self.text.at() - 1;
        let name = self.text.word("a name")?;
        // Most nodes use the previous one.
        if let Some((last, id)) = self.last
            && last == name
        {
            return Ok(Argument::Node(id));
        }
        if let Some(node) = self.graph.find_name(name) {
            return Ok(Argument::Node(node.id()));
        }
        let why = match name == self.current {
            true => "the node itself",
            false => "which is not defined yet",
        };
        let found = format!("`%{name}`, {why}");
        Err(self.text.wrong(start, "a node of an earlier line", found))
    }

    /// Anything that starts with a letter: a constant, an element type or a slice.
    fn named(&mut self, depth: usize) -> Result<Argument> {
        let start = self.text.at();
        let word = self.text.word("a value")?;
        Ok(match word {
            "None" => Argument::None,
            "true" => Argument::Bool(true),
            "false" => Argument::Bool(false),
            "inf" => Argument::Float(f64::INFINITY),
            "NaN" => Argument::Float(f64::NAN),
            "slice" => Argument::Slice(Arc::new(self.three(depth)?)),
            "range" => Argument::Range(Arc::new(self.three(depth)?)),
            "cpu" => Argument::Device(Device::Cpu),
            "cuda" | "metal" => {
                self.text.expect(":")?;
                let digits = self.text.word("a device number")?;
                match format!("{word}:{digits}").parse() {
                    Ok(device) => Argument::Device(device),
                    Err(_) => return Err(self.text.wrong(start, "a device", excerpt(word))),
                }
            }
            _ => match DType::from_name(word) {
                Some(dtype) => Argument::DType(dtype),
                None => return Err(self.text.wrong(start, "a value", excerpt(word))),
            },
        })
    }

    /// `(start, stop, step)`.
    fn three(&mut self, depth: usize) -> Result<[Argument; 3]> {
        self.text.expect("(")?;
        let first = self.argument(depth + 1)?;
        self.text.expect(",")?;
        let second = self.argument(depth + 1)?;
        self.text.expect(",")?;
        let third = self.argument(depth + 1)?;
        self.text.expect(")")?;
        Ok([first, second, third])
    }

    fn number(&mut self) -> Result<Argument> {
        let start = self.text.at();
        let rest = self.text.rest();
        let mut before = ' ';
        let length = rest
            .find(|c: char| {
                let sign = c == '-' || c == '+';
                let part = is_word(c) || c == '.' || (sign && matches!(before, ' ' | 'e' | 'E'));
                before = c;
                !part
            })
            .unwrap_or(rest.len());
        let text = &rest[..length];
        self.text.skip(length);
        if text == "-inf" {
            return Ok(Argument::Float(f64::NEG_INFINITY));
        }
        let digits = text.strip_prefix('-').unwrap_or(text);
        if !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) {
            return match text.parse() {
                Ok(number) => Ok(Argument::Int(number)),
                Err(_) => Err(self
                    .text
                    .wrong(start, "an integer of 64 bits", excerpt(text))),
            };
        }
        let mantissa = text.split(['e', 'E']).next().unwrap_or(text);
        let is_zero = !mantissa.contains(|c: char| ('1'..='9').contains(&c));
        let what = match text.parse::<f64>() {
            Ok(x) if digits.starts_with(|c: char| c.is_ascii_digit()) => {
                if x.is_finite() && (x != 0.0 || is_zero) {
                    return Ok(Argument::Float(x));
                }
                "a float of 64 bits"
            }
            _ => "a number",
        };
        Err(self.text.wrong(start, what, excerpt(text)))
    }
}
