//! The one error type: what went wrong, at which node, source line and module path, and what to do about it.

use std::error::Error as StdError;
use std::fmt;

use crate::location::SourceLocation;
use crate::text::count;

/// `Result` with fx's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What kind of thing went wrong.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A node id that its graph does not know.
    #[error(
        "node id {id} is not in this graph: it was erased, or it belongs to another graph; take ids from this graph's own nodes"
    )]
    StaleNode {
        /// The id, as printed.
        id: String,
    },
    /// A node that other nodes still use cannot be erased.
    #[error(
        "cannot erase %{node}: it still has {} ({}); replace its uses first",
        count(users.len(), "user"),
        list(users)
    )]
    NodeInUse {
        /// The node's name.
        node: String,
        /// Its users' names.
        users: Vec<String>,
    },
    /// An edit that would make a node depend on itself.
    #[error("%{node} would depend on itself through %{through}")]
    Cycle {
        /// The node.
        node: String,
        /// The input that leads back to it.
        through: String,
    },
    /// The arguments of a call do not fit what is called.
    #[error("`{callee}` {problem}; it takes ({signature})")]
    Arguments {
        /// What is called.
        callee: String,
        /// What does not fit.
        problem: String,
        /// The parameters it has.
        signature: String,
    },
    /// One argument has the wrong type.
    #[error("expected {expected}, found {found}")]
    Type {
        /// What was expected.
        expected: String,
        /// What was given.
        found: String,
    },
    /// A plain argument that was left symbolic.
    #[error(
        "argument `{argument}` is a plain `{ty}`, whose value tracing needs: bind it with `Trace::concrete(\"{argument}\", value)`, or make it a tensor, an `Int`, a `Float` or a `Bool`, which stay symbolic"
    )]
    Unspecialised {
        /// The argument's name.
        argument: String,
        /// Its type as written.
        ty: String,
    },
    /// A value that only a run has was asked for while tracing.
    #[error(
        "`{what}` needs the value of {value}, which is symbolic while tracing: keep it in the graph, or make the function that needs it a leaf with #[wrap]"
    )]
    Escape {
        /// The operation that asked.
        what: String,
        /// The symbolic value.
        value: String,
    },
    /// A symbolic value was asked for its truth.
    #[error(
        "symbolically traced variables cannot be used as inputs to control flow: the truth of {value} is known only when the graph runs; decide by a plain `bool` argument and bind it with `Trace::concrete`, make the function a leaf with #[wrap], or answer in `Tracer::to_bool`"
    )]
    ControlFlow {
        /// The symbolic value.
        value: String,
    },
    /// A symbolic value was asked for its items or keys.
    #[error(
        "{value} is symbolic and cannot be iterated: its {what} are known only when the graph runs; take a fixed number of items, specialise the argument to a structure with `Trace::concrete` and `tree!`, make the function a leaf with #[wrap], or answer in `Tracer::{question}`"
    )]
    Iteration {
        /// `items` or `keys`.
        what: &'static str,
        /// The method of the tracer that is asked.
        question: &'static str,
        /// The symbolic value.
        value: String,
    },
    /// A proxy that is used where its trace is not.
    #[error("{proxy} cannot be used here: {reason}")]
    ForeignProxy {
        /// The proxy, as printed.
        proxy: String,
        /// Why not.
        reason: String,
    },
    /// A name that leads nowhere.
    #[error("no {what} at `{path}`{hint}")]
    NotFound {
        /// What was looked for.
        what: &'static str,
        /// Where.
        path: String,
        /// What to do, starting with `; `, or nothing.
        hint: String,
    },
    /// A name, path or pattern that fits nothing of what is there.
    #[error("{problem}")]
    Unknown {
        /// The name, as it was given.
        name: String,
        /// What it was looked for in, and what to do.
        problem: String,
    },
    /// A name or path that something else has already, or that two have.
    #[error("{problem}")]
    Taken {
        /// The name or path.
        path: String,
        /// What has it, and what to do.
        problem: String,
    },
    /// What is at a path is of another kind or type, or has another signature, than it has to be.
    #[error("{problem}")]
    Mismatch {
        /// The path.
        path: String,
        /// What is there, what is needed, and what to do.
        problem: String,
    },
    /// An argument other than the one that a graph was specialised to.
    #[error(
        "argument {argument} was specialised to {expected} when this graph was traced, but {found} came: {mend}"
    )]
    Guard {
        /// The argument, as printed.
        argument: String,
        /// What it was when the graph was traced.
        expected: String,
        /// What came.
        found: String,
        /// What to do.
        mend: String,
    },
    /// An assertion of a graph that does not hold, with its message.
    #[error("{0}")]
    Assertion(String),
    /// An operator that its operands do not have.
    #[error("`{op}` is not defined for {operands}")]
    Operator {
        /// The operator's name.
        op: String,
        /// What the operands are.
        operands: String,
    },
    /// An index that is outside what it is of.
    #[error("index {index} is outside {container}")]
    Index {
        /// The index, which counts from the end where it is negative.
        index: i64,
        /// What it is of.
        container: String,
    },
    /// A key that a dict does not have.
    #[error("the dict has no key {key:?}")]
    Key {
        /// The key.
        key: String,
    },
    /// A computation on numbers that has no result.
    #[error("{0}")]
    Arithmetic(String),
    /// Several things fit a name where one is meant.
    #[error("{problem}")]
    Ambiguous {
        /// The name.
        name: String,
        /// What fits, and what to do.
        problem: String,
    },
    /// A type or function that nothing is registered for, or that cannot be named outside of its process.
    #[error("{problem}")]
    Unregistered {
        /// The type's name or the function's path.
        name: String,
        /// What is missing, and what to do.
        problem: String,
    },
    /// A graph that is borrowed where it is to be read or changed.
    #[error("{0}")]
    Borrowed(String),
    /// Nodes that cannot be lifted out, parts that cannot be split, or a call that cannot be inlined.
    #[error("{0}")]
    Region(String),
    /// Constraints between passes that their order breaks, or that no order keeps.
    #[error("{0}")]
    Constraint(String),
    /// Numbers that passes had to keep and changed, or that cannot be compared.
    #[error("{0}")]
    Numbers(String),
    /// Shapes that have to be the same and are not.
    #[error("shapes {found:?} and {expected:?} differ")]
    Shapes {
        /// The shape that was found.
        found: Vec<usize>,
        /// The shape that it has to be.
        expected: Vec<usize>,
    },
    /// A bound that was reached: of nested structures, of comparisons, of replacements.
    #[error("{problem}")]
    Limit {
        /// The bound.
        limit: usize,
        /// What reached it, and what to do.
        problem: String,
    },
    /// A text that is no graph.
    #[error("line {line}, column {column}: {problem}")]
    Syntax {
        /// The line, from 1.
        line: usize,
        /// The column in characters, from 1.
        column: usize,
        /// What is wrong there.
        problem: String,
    },
    /// A pattern that cannot be looked for.
    #[error("the pattern: {0}")]
    Pattern(Box<Error>),
    /// A replacement that does not fit its pattern.
    #[error("the replacement: {0}")]
    Replacement(Box<Error>),
    /// A graph module of which no source can be written that compiles.
    #[error("{0}")]
    Source(String),
    /// Weights that do not fit a module.
    #[error("{0}")]
    Weights(String),
    /// Something in a saved file that is not as it should be, or that a file cannot keep.
    #[error("{}{}{problem}", place.trim_start_matches('.'), if place.is_empty() { "" } else { ": " })]
    Saved {
        /// Where in the file, such as `nodes[12].kwargs.dim`.
        place: String,
        /// What is wrong there, and what to do.
        problem: String,
    },
    /// A graph that breaks its own rules.
    #[error("{0}")]
    Graph(String),
    /// The tensor library or a user's function refused.
    #[error("{0}")]
    Kernel(#[source] Box<dyn StdError + Send + Sync>),
    /// Anything else, in words.
    #[error("{0}")]
    Message(String),
}

/// An error of fx: its [`ErrorKind`], and where it happened.
///
/// Displayed as `while executing %add (src/model.rs:31:9, in layers.3): expected ..`.
///
/// ```
/// use fx_core::{Error, ErrorKind};
/// let error = Error::msg("the kernel size must not be 0");
/// assert!(matches!(error.kind(), ErrorKind::Message(_)));
/// assert_eq!(error.to_string(), "the kernel size must not be 0");
/// ```
pub struct Error(Box<Inner>);

struct Inner {
    kind: ErrorKind,
    place: Option<Place>,
    pass: Option<FailedPass>,
}

/// The pass that failed, and those that ran before it.
struct FailedPass {
    name: String,
    after: Vec<String>,
}

/// Where an error happened.
#[derive(Debug, Clone)]
struct Place {
    doing: &'static str,
    node: String,
    location: Option<SourceLocation>,
    module: Option<String>,
}

impl Error {
    /// An error in words.
    pub fn msg(text: impl fmt::Display) -> Self {
        ErrorKind::Message(text.to_string()).into()
    }

    /// An error of another library, kept as the source.
    pub fn other(error: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        ErrorKind::Kernel(error.into()).into()
    }

    /// A type error: `expected` against what was found.
    pub fn expected(expected: impl fmt::Display, found: impl fmt::Display) -> Self {
        ErrorKind::Type {
            expected: expected.to_string(),
            found: found.to_string(),
        }
        .into()
    }

    /// Several things that fit a name.
    pub(crate) fn ambiguous(name: &str, problem: impl fmt::Display) -> Self {
        let (name, problem) = (name.to_string(), problem.to_string());
        ErrorKind::Ambiguous { name, problem }.into()
    }

    /// A type or function that is not registered.
    pub(crate) fn unregistered(name: &str, problem: impl fmt::Display) -> Self {
        let (name, problem) = (name.to_string(), problem.to_string());
        ErrorKind::Unregistered { name, problem }.into()
    }

    /// Nodes, parts or a call that cannot be taken out or put in.
    pub(crate) fn region(problem: impl fmt::Display) -> Self {
        ErrorKind::Region(problem.to_string()).into()
    }

    /// A name, path or pattern that fits nothing.
    pub(crate) fn unknown(name: &str, problem: impl fmt::Display) -> Self {
        let (name, problem) = (name.to_string(), problem.to_string());
        ErrorKind::Unknown { name, problem }.into()
    }

    /// A path that something else has.
    pub(crate) fn taken(path: &str, problem: impl fmt::Display) -> Self {
        let (path, problem) = (path.to_string(), problem.to_string());
        ErrorKind::Taken { path, problem }.into()
    }

    /// What is at a path is not what it has to be.
    pub(crate) fn mismatch(path: &str, problem: impl fmt::Display) -> Self {
        let (path, problem) = (path.to_string(), problem.to_string());
        ErrorKind::Mismatch { path, problem }.into()
    }

    /// A bound that was reached.
    pub(crate) fn limit(limit: usize, problem: impl fmt::Display) -> Self {
        let problem = problem.to_string();
        ErrorKind::Limit { limit, problem }.into()
    }

    /// A computation on numbers without a result.
    pub(crate) fn arithmetic(problem: impl fmt::Display) -> Self {
        ErrorKind::Arithmetic(problem.to_string()).into()
    }

    /// Source that would not compile.
    pub(crate) fn source_of(problem: impl fmt::Display) -> Self {
        ErrorKind::Source(problem.to_string()).into()
    }

    /// An operator that its operands do not have.
    pub(crate) fn operator(op: impl fmt::Display, operands: impl fmt::Display) -> Self {
        let (op, operands) = (op.to_string(), operands.to_string());
        ErrorKind::Operator { op, operands }.into()
    }

    /// A problem with a saved file, at a place that the callers [complete](Error::inside).
    pub(crate) fn saved(problem: impl fmt::Display) -> Self {
        ErrorKind::Saved {
            place: String::new(),
            problem: problem.to_string(),
        }
        .into()
    }

    /// The error, told to be inside a part of a saved file: `.name` or `[index]`.
    pub(crate) fn inside(self, step: impl fmt::Display) -> Self {
        let (place, problem) = match *self.0 {
            Inner {
                kind: ErrorKind::Saved { place, problem },
                place: None,
                pass: None,
            } => (format!("{step}{place}"), problem),
            inner => (step.to_string(), Error(Box::new(inner)).to_string()),
        };
        ErrorKind::Saved { place, problem }.into()
    }

    /// What kind of error it is.
    pub fn kind(&self) -> &ErrorKind {
        &self.0.kind
    }

    /// The name of the node where it happened, without `%`.
    pub fn node(&self) -> Option<&str> {
        self.0.place.as_ref()?.node.strip_prefix('%')
    }

    /// The user's source line of that node.
    pub fn location(&self) -> Option<&SourceLocation> {
        self.0.place.as_ref().and_then(|p| p.location.as_ref())
    }

    /// The path of the module that the node came from.
    pub fn module_path(&self) -> Option<&str> {
        self.0.place.as_ref().and_then(|p| p.module.as_deref())
    }

    /// The name of the pass that failed.
    pub fn pass(&self) -> Option<&str> {
        self.0.pass.as_ref().map(|pass| pass.name.as_str())
    }

    /// Adds the pass that failed, unless an inner one is known already.
    pub(crate) fn in_pass(mut self, name: &str) -> Self {
        self.0.pass.get_or_insert_with(|| FailedPass {
            name: name.to_string(),
            after: Vec::new(),
        });
        self
    }

    /// Adds the passes that ran before the one that failed.
    pub(crate) fn after(mut self, names: &[String]) -> Self {
        if let Some(pass) = &mut self.0.pass {
            pass.after = names.to_vec();
        }
        self
    }

    /// Adds where it happened, unless a deeper place is known already.
    pub(crate) fn at(
        mut self,
        doing: &'static str,
        node: impl fmt::Display,
        location: Option<SourceLocation>,
        module: Option<String>,
    ) -> Self {
        if self.0.place.is_none() {
            self.0.place = Some(Place {
                doing,
                node: node.to_string(),
                location,
                module,
            });
        }
        self
    }
}

impl From<ErrorKind> for Error {
    fn from(kind: ErrorKind) -> Self {
        Error(Box::new(Inner {
            kind,
            place: None,
            pass: None,
        }))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(pass) = &self.0.pass {
            write!(f, "in pass `{}`", pass.name)?;
            for (at, earlier) in pass.after.iter().enumerate() {
                let word = if at == 0 { " after" } else { "," };
                write!(f, "{word} `{earlier}`")?;
            }
            f.write_str(": ")?;
        }
        if let Some(place) = &self.0.place {
            write!(f, "while {} {}", place.doing, place.node)?;
            match (&place.location, &place.module) {
                (Some(location), Some(module)) => write!(f, " ({location}, in {module})")?,
                (Some(location), None) => write!(f, " ({location})")?,
                (None, Some(module)) => write!(f, " (in {module})")?,
                (None, None) => {}
            }
            f.write_str(": ")?;
        }
        write!(f, "{}", self.0.kind)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Error({self})")
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.kind.source()
    }
}

fn list(names: &[String]) -> String {
    const SHOWN: usize = 8;
    let mut text = names
        .iter()
        .take(SHOWN)
        .map(|n| format!("%{n}"))
        .collect::<Vec<_>>()
        .join(", ");
    if names.len() > SHOWN {
        text.push_str(", ...");
    }
    text
}
