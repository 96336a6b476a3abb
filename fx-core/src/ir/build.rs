//! Adding nodes: a method for each opcode, and `NewNode` for nodes with a custom name or type.

use std::panic::Location;

use super::argument::{Args, Argument, IntoArguments, IntoKwargs, Kwargs};
use super::function::Function;
use super::graph::Graph;
use super::op::Op;
use super::places::Site;
use super::registry;
use super::signature::Literal;
use crate::error::Result;
use crate::value::handle::NodeId;

/// A node to be added: its op, arguments, keyword arguments, name and type.
#[derive(Debug, Clone)]
#[must_use = "a new node does nothing until it is added to a graph"]
pub struct NewNode<'a> {
    op: Op,
    args: Args,
    kwargs: Kwargs,
    name: Option<&'a str>,
    type_expr: Option<&'a str>,
}

impl<'a> NewNode<'a> {
    /// Creates a node without arguments, named after its target.
    pub fn new(op: Op) -> Self {
        NewNode {
            op,
            args: Args::new(),
            kwargs: Kwargs::new(),
            name: None,
            type_expr: None,
        }
    }

    /// Sets the positional arguments.
    pub fn args(mut self, args: impl IntoArguments) -> Self {
        self.args = args.into_arguments();
        self
    }

    /// Sets the keyword arguments.
    pub fn kwargs(mut self, kwargs: impl IntoKwargs) -> Self {
        self.kwargs = kwargs.into_kwargs();
        self
    }

    /// Sets a custom name; a number is appended if it is taken.
    pub fn name(mut self, name: &'a str) -> Self {
        self.name = Some(name);
        self
    }

    /// Sets a type annotation.
    pub fn type_expr(mut self, ty: &'a str) -> Self {
        self.type_expr = Some(ty);
        self
    }
}

impl Graph {
    /// Adds a node with a custom name or type.
    ///
    /// # Errors
    /// Same as [`create_node`](Graph::create_node).
    ///
    /// ```
    /// # use fx_core::operator;
    /// # use fx_core::ir::{Graph, NewNode, Op};
    /// let mut graph = Graph::new();
    /// let x = graph.add(NewNode::new(Op::Placeholder("x".into())).type_expr("Int"))?;
    /// let y = graph.add(NewNode::new(Op::CallFunction(operator::neg)).args((x,)).name("minus"))?;
    /// assert!(graph.node(y)?.name() == "minus");
    /// # Ok::<(), fx_core::Error>(())
    /// ```
    #[track_caller]
    pub fn add(&mut self, new: NewNode<'_>) -> Result<NodeId> {
        let site = Site::Caller(Location::caller());
        registry::open_for(&new.op);
        let id = self.insert(new.op, new.args, new.kwargs, new.name, site)?;
        if new.type_expr.is_some() {
            self.node_mut(id)?.set_type_expr(new.type_expr);
        }
        Ok(id)
    }

    /// Adds a node at the insertion point, named after its target.
    ///
    /// # Errors
    /// Returns an error if an argument is a node of another graph, or nests too deep.
    #[track_caller]
    pub fn create_node(
        &mut self,
        op: Op,
        args: impl IntoArguments,
        kwargs: impl IntoKwargs,
    ) -> Result<NodeId> {
        registry::open_for(&op);
        self.called(op, args, kwargs)
    }

    /// Same as `create_node`, for an op that names no method.
    #[track_caller]
    fn called(
        &mut self,
        op: Op,
        args: impl IntoArguments,
        kwargs: impl IntoKwargs,
    ) -> Result<NodeId> {
        self.insert(
            op,
            args.into_arguments(),
            kwargs.into_kwargs(),
            None,
            Site::Caller(Location::caller()),
        )
    }

    /// Adds an input.
    ///
    /// # Errors
    /// Same as [`create_node`](Graph::create_node).
    #[track_caller]
    pub fn placeholder(&mut self, name: &str) -> Result<NodeId> {
        self.called(Op::Placeholder(name.into()), (), ())
    }

    /// Adds an input with a default.
    ///
    /// # Errors
    /// Same as [`create_node`](Graph::create_node).
    #[track_caller]
    pub fn placeholder_with_default(&mut self, name: &str, default: &Literal) -> Result<NodeId> {
        self.called(Op::Placeholder(name.into()), (Argument::from(default),), ())
    }

    /// Adds a parameter, buffer or constant by its dotted path.
    ///
    /// # Errors
    /// Same as [`create_node`](Graph::create_node).
    #[track_caller]
    pub fn get_attr(&mut self, path: &str) -> Result<NodeId> {
        self.called(Op::GetAttr(path.into()), (), ())
    }

    /// Adds a call to a function.
    ///
    /// # Errors
    /// Same as [`create_node`](Graph::create_node).
    #[track_caller]
    pub fn call_function(
        &mut self,
        function: impl Into<Function>,
        args: impl IntoArguments,
        kwargs: impl IntoKwargs,
    ) -> Result<NodeId> {
        self.called(Op::CallFunction(function.into()), args, kwargs)
    }

    /// Adds a call to a method of the first argument.
    ///
    /// # Errors
    /// Same as [`create_node`](Graph::create_node).
    #[track_caller]
    pub fn call_method(
        &mut self,
        method: &str,
        args: impl IntoArguments,
        kwargs: impl IntoKwargs,
    ) -> Result<NodeId> {
        self.create_node(Op::CallMethod(method.into()), args, kwargs)
    }

    /// Adds a call to a module by its dotted path.
    ///
    /// # Errors
    /// Same as [`create_node`](Graph::create_node).
    #[track_caller]
    pub fn call_module(
        &mut self,
        path: &str,
        args: impl IntoArguments,
        kwargs: impl IntoKwargs,
    ) -> Result<NodeId> {
        self.called(Op::CallModule(path.into()), args, kwargs)
    }

    /// Adds the output.
    ///
    /// # Errors
    /// Same as [`create_node`](Graph::create_node).
    #[track_caller]
    pub fn output(&mut self, result: impl Into<Argument>) -> Result<NodeId> {
        self.called(Op::Output, (result.into(),), ())
    }
}
