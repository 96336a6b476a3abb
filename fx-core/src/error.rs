//! The error type: what went wrong, at which node, source line and module path, and how to fix it.

use std::error::Error as StdError;
use std::fmt;
use std::panic::Location;

use crate::location::{SourceLocation, is_in_a_library};
use crate::outlined::Outlined;
use crate::text::count;

/// `Result` with fx's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The kind of an error.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A node id that does not exist in its graph.
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
    /// The arguments of a call do not fit the callee.
    #[error("`{callee}` {problem}; it takes ({signature})")]
    Arguments {
        /// The callee.
        callee: String,
        /// What does not fit.
        problem: String,
        /// The callee's parameters.
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
    /// A plain argument was left symbolic.
    #[error(
        "argument `{argument}` is a plain `{ty}`, whose value tracing needs: bind it with `Trace::concrete(\"{argument}\", value)`, or make it a tensor, an `Int`, a `Float` or a `Bool`, which stay symbolic"
    )]
    Unspecialised {
        /// The argument's name.
        argument: String,
        /// Its type as written.
        ty: String,
    },
    /// A value that is known only at run time was requested while tracing.
    #[error("`{what}` needs the value of {value}, which is symbolic while tracing: {hint}")]
    Escape {
        /// The operation that requested it.
        what: String,
        /// What to do instead.
        hint: String,
        /// The symbolic value.
        value: String,
    },
    /// A symbolic value was used as a boolean.
    #[error(
        "symbolically traced variables cannot be used as inputs to control flow: the truth of {value} is known only when the graph runs; record both ways with `control::cond`, decide by a plain `bool` argument and bind it with `Trace::concrete`, make the function a leaf with #[wrap], or answer in `Tracer::to_bool`"
    )]
    ControlFlow {
        /// The symbolic value.
        value: String,
    },
    /// The items or keys of a symbolic value were requested.
    #[error(
        "{value} is symbolic and cannot be iterated: its {what} are known only when the graph runs; take a fixed number of items, specialise the argument to a structure with `Trace::concrete` and `tree!`, make the function a leaf with #[wrap], or answer in `Tracer::{question}`"
    )]
    Iteration {
        /// `items` or `keys`.
        what: &'static str,
        /// The tracer's method that is asked.
        question: &'static str,
        /// The symbolic value.
        value: String,
    },
    /// A proxy was used outside its trace.
    #[error("{proxy} cannot be used here: {reason}")]
    ForeignProxy {
        /// The proxy, as printed.
        proxy: String,
        /// The reason.
        reason: String,
    },
    /// A name that does not exist.
    #[error("no {what} at `{path}`{hint}")]
    NotFound {
        /// What was looked for.
        what: &'static str,
        /// Where.
        path: String,
        /// How to fix it, starting with `; `, or empty.
        hint: String,
    },
    /// A name, path or pattern that matches nothing.
    #[error("{problem}")]
    Unknown {
        /// The name, as it was passed.
        name: String,
        /// Where it was looked up, and how to fix it.
        problem: String,
    },
    /// A name or path that is already taken, or is used twice.
    #[error("{problem}")]
    Taken {
        /// The name or path.
        path: String,
        /// What has it, and how to fix it.
        problem: String,
    },
    /// The thing at a path has the wrong kind, type or signature.
    #[error("{problem}")]
    Mismatch {
        /// The path.
        path: String,
        /// What is there, what is needed, and how to fix it.
        problem: String,
    },
    /// An argument that differs from the one that a graph was specialised to.
    #[error(
        "argument {argument} was specialised to {expected} when this graph was traced, but {found} came: {fix}"
    )]
    Guard {
        /// The argument, as printed.
        argument: String,
        /// What it was when the graph was traced.
        expected: String,
        /// The actual argument.
        found: String,
        /// How to fix it.
        fix: String,
    },
    /// An assertion in a graph that failed, with its message.
    #[error("{0}")]
    Assertion(String),
    /// An operator that is not defined for its operands.
    #[error("`{op}` is not defined for {operands}")]
    Operator {
        /// The operator's name.
        op: String,
        /// What the operands are.
        operands: String,
    },
    /// An index that is out of range.
    #[error("index {index} is outside {container}")]
    Index {
        /// The index; negative indices count from the end.
        index: i64,
        /// What was indexed.
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
    /// Several things match a name where one is meant.
    #[error("{problem}")]
    Ambiguous {
        /// The name.
        name: String,
        /// The matches, and how to fix it.
        problem: String,
    },
    /// A type or function that is not registered, or that cannot be named outside its process.
    #[error("{problem}")]
    Unregistered {
        /// The type's name or the function's path.
        name: String,
        /// What is missing, and how to fix it.
        problem: String,
    },
    /// A graph that is borrowed while it is to be read or changed.
    #[error("{0}")]
    Borrowed(String),
    /// Nodes that cannot be extracted, parts that cannot be split, or a call that cannot be
    /// inlined.
    #[error("{0}")]
    Region(String),
    /// Ordering constraints between passes that their order breaks, or that no order satisfies.
    #[error("{0}")]
    Constraint(String),
    /// Numbers that passes had to preserve and changed, or that cannot be compared.
    #[error("{0}")]
    Numbers(String),
    /// What a format does not have: the reason, and what to write instead.
    #[error("{0}")]
    NotInFormat(String),
    /// Shapes that must be equal and differ.
    #[error("shapes {found:?} and {expected:?} differ")]
    Shapes {
        /// The shape that was found.
        found: Vec<usize>,
        /// The expected shape.
        expected: Vec<usize>,
    },
    /// A limit was reached: of nested structures, comparisons or replacements.
    #[error("{problem}")]
    Limit {
        /// The limit.
        limit: usize,
        /// What reached it, and how to fix it.
        problem: String,
    },
    /// Text that is not a graph.
    #[error("line {line}, column {column}: {problem}")]
    Syntax {
        /// The line, from 1.
        line: usize,
        /// The column in characters, from 1.
        column: usize,
        /// The problem at that position.
        problem: String,
    },
    /// A pattern that cannot be searched for.
    #[error("the pattern: {0}")]
    Pattern(Box<Error>),
    /// A replacement that does not fit its pattern.
    #[error("the replacement: {0}")]
    Replacement(Box<Error>),
    /// A graph module whose source would not compile.
    #[error("{0}")]
    Source(String),
    /// Weights that do not fit a module.
    #[error("{0}")]
    Weights(String),
    /// Invalid content in a saved file, or something that a file cannot store.
    #[error("{}{}{problem}", place.trim_start_matches('.'), if place.is_empty() { "" } else { ": " })]
    Saved {
        /// Where in the file, such as `nodes[12].kwargs.dim`.
        place: String,
        /// What is wrong there, and how to fix it.
        problem: String,
    },
    /// A graph that breaks its own rules.
    #[error("{0}")]
    Graph(String),
    /// The tensor library or a user's function returned an error.
    #[error("{0}")]
    Kernel(#[source] Box<dyn StdError + Send + Sync>),
    /// Any other error, as text.
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
// In a box around the one that is outlined, since a result of a tensor is two words then, which a call
// returns in registers.
pub struct Error(Box<Outlined<Inner>>);

struct Inner {
    kind: ErrorKind,
    place: Option<Place>,
    pass: Option<FailedPass>,
    stage: Option<usize>,
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
    /// Whether it is the place of an eager call, which gives way to a node.
    is_call: bool,
}

impl Error {
    /// An error with a text message.
    pub fn msg(text: impl fmt::Display) -> Self {
        ErrorKind::Message(text.to_string()).into()
    }

    /// What a format does not have ([`ErrorKind::NotInFormat`]): the reason, and what to write instead.
    ///
    /// ```
    /// use fx_core::{Error, ErrorKind};
    /// let error = Error::not_in_format("lines have no loops: unroll them");
    /// assert!(matches!(error.kind(), ErrorKind::NotInFormat(_)));
    /// ```
    pub fn not_in_format(reason: impl fmt::Display) -> Self {
        ErrorKind::NotInFormat(reason.to_string()).into()
    }

    /// An error from another library, kept as the source.
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

    /// Several things match a name.
    pub(crate) fn ambiguous(name: &str, problem: impl fmt::Display) -> Self {
        let (name, problem) = (name.to_string(), problem.to_string());
        ErrorKind::Ambiguous { name, problem }.into()
    }

    /// A type or function that is not registered.
    pub(crate) fn unregistered(name: &str, problem: impl fmt::Display) -> Self {
        let (name, problem) = (name.to_string(), problem.to_string());
        ErrorKind::Unregistered { name, problem }.into()
    }

    /// Nodes, parts or a call that cannot be extracted or inserted.
    pub(crate) fn region(problem: impl fmt::Display) -> Self {
        ErrorKind::Region(problem.to_string()).into()
    }

    /// A name, path or pattern that matches nothing.
    pub(crate) fn unknown(name: &str, problem: impl fmt::Display) -> Self {
        let (name, problem) = (name.to_string(), problem.to_string());
        ErrorKind::Unknown { name, problem }.into()
    }

    /// A path that is already taken.
    pub(crate) fn taken(path: &str, problem: impl fmt::Display) -> Self {
        let (path, problem) = (path.to_string(), problem.to_string());
        ErrorKind::Taken { path, problem }.into()
    }

    /// The thing at a path is not what it must be.
    pub(crate) fn mismatch(path: &str, problem: impl fmt::Display) -> Self {
        let (path, problem) = (path.to_string(), problem.to_string());
        ErrorKind::Mismatch { path, problem }.into()
    }

    /// A limit that was reached.
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

    /// An operator that is not defined for its operands.
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

    /// Adds an outer step to the error's place in a saved file: `.name` or `[index]`.
    pub(crate) fn inside(self, step: impl fmt::Display) -> Self {
        let (place, problem) = match self.0.into_inner() {
            Inner {
                kind: ErrorKind::Saved { place, problem },
                place: None,
                pass: None,
                stage: None,
            } => (format!("{step}{place}"), problem),
            inner => (
                step.to_string(),
                Error(Box::new(Outlined::new(inner))).to_string(),
            ),
        };
        ErrorKind::Saved { place, problem }.into()
    }

    /// The kind of the error.
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

    /// The module path that the node came from.
    pub fn module_path(&self) -> Option<&str> {
        self.0.place.as_ref().and_then(|p| p.module.as_deref())
    }

    /// The name of the pass that failed.
    pub fn pass(&self) -> Option<&str> {
        self.0.pass.as_ref().map(|pass| pass.name.as_str())
    }

    /// The stage of a [pipeline](crate::passes::pipeline) that failed, counted from 0.
    pub fn stage(&self) -> Option<usize> {
        self.0.stage
    }

    /// Adds the stage of a pipeline that failed.
    pub(crate) fn in_stage(mut self, stage: usize) -> Self {
        self.0.stage = Some(stage);
        self
    }

    /// Adds the pass that failed, unless an inner one is already set.
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

    /// Adds the eager call that failed. The innermost call is named, at the innermost line outside
    /// of the libraries that re-export fx: what is inside them tells a user nothing.
    #[cold]
    pub(crate) fn in_call(mut self, what: &str, caller: &'static Location<'static>) -> Self {
        match &mut self.0.place {
            None => {
                self.0.place = Some(Place {
                    doing: "calling",
                    node: format!("`{what}`"),
                    location: Some(caller.into()),
                    module: None,
                    is_call: true,
                });
            }
            Some(place) if place.is_call => {
                let is_inside = |at: &SourceLocation| is_in_a_library(&at.file);
                if place.location.as_ref().is_some_and(is_inside) {
                    place.location = Some(caller.into());
                }
            }
            Some(_) => {}
        }
        self
    }

    /// Adds where it happened, unless a deeper place is already set.
    pub(crate) fn at(
        mut self,
        doing: &'static str,
        node: impl fmt::Display,
        location: Option<SourceLocation>,
        module: Option<String>,
    ) -> Self {
        if self.0.place.as_ref().is_none_or(|place| place.is_call) {
            self.0.place = Some(Place {
                doing,
                node: node.to_string(),
                location,
                module,
                is_call: false,
            });
        }
        self
    }
}

impl From<ErrorKind> for Error {
    fn from(kind: ErrorKind) -> Self {
        Error(Box::new(Outlined::new(Inner {
            kind,
            place: None,
            pass: None,
            stage: None,
        })))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(stage) = self.0.stage {
            write!(f, "in stage {stage}: ")?;
        }
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
            if place.is_call {
                // Kernels name themselves, as the place has.
                let text = self.0.kind.to_string();
                let named = place.node.trim_matches('`');
                let rest = text
                    .strip_prefix(named)
                    .and_then(|rest| rest.strip_prefix(": "));
                return f.write_str(rest.unwrap_or(&text));
            }
        }
        write!(f, "{}", self.0.kind)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // `fn main() -> Result<()>` prints an error by this.
        fmt::Display::fmt(self, f)
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
