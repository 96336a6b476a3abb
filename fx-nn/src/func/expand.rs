//! The graph of one example, made ready for many: functions that have no batching rule are written by others.

use fx_core::ir::{Effects, Function, FunctionTable, ParamSpec, ValueMeta, operator};
use fx_core::module::Module;
use fx_core::passes::{CoreSet, MethodsToFunctions};
use fx_core::trace::{Recorder, Trace};
use fx_core::value::{Tree, Value};
use fx_core::{GraphModule, Result};

use super::batching::{BatchCall, Batching};
use super::derivative::Derivative;
use super::kinds::by_kind;
use super::source::{Replay, flat, meta_of, with_arguments};
use super::tape::{Composite, expanded};
use crate::lowering::Composed;
use crate::op_kind::OpKind;

/// How functions are called for many examples.
pub(super) struct Rules {
    pub(super) batching: &'static FunctionTable<Batching>,
    pub(super) kinds: &'static FunctionTable<OpKind>,
    pub(super) derivatives: &'static FunctionTable<Derivative>,
    core: &'static FunctionTable<CoreSet>,
    composed: &'static FunctionTable<Composed>,
}

/// What a function is called by for many examples.
type BatchRule = fn(&BatchCall<'_>) -> Result<Value>;

impl Rules {
    pub fn registered() -> Result<Self> {
        Ok(Rules {
            batching: FunctionTable::registered()?,
            kinds: FunctionTable::registered()?,
            derivatives: FunctionTable::registered()?,
            core: FunctionTable::registered()?,
            composed: FunctionTable::registered()?,
        })
    }

    pub fn of(&self, function: Function) -> Option<BatchRule> {
        match self.batching.get(function) {
            Some(Batching(rule)) => Some(*rule),
            None => by_kind(*self.kinds.get(function)?, function),
        }
    }

    /// The other functions that a function without a rule is written by.
    fn composite(&self, function: Function) -> Option<Composite> {
        let draws = self.kinds.get(function) == Some(&OpKind::Draw);
        if draws || function.def().effects.contains(Effects::WRITES) || self.of(function).is_some()
        {
            return None;
        }
        if let Some(CoreSet::Decomposed(rule)) = self.core.get(function) {
            return Some(*rule);
        }
        if let Some(Derivative::Composite(rule)) = self.derivatives.get(function) {
            return Some(*rule);
        }
        self.composed.get(function).map(|composed| composed.0)
    }
}

/// The graph of one example, in which every function has a rule, if other functions give it.
pub(super) fn prepared(
    mut gm: GraphModule,
    args: &[Value],
    params: &[ParamSpec],
) -> Result<GraphModule> {
    /// How deeply functions are written by others.
    const DEEPEST: usize = 16;
    let rules = Rules::registered()?;
    for _ in 0..DEEPEST {
        let mut is_left = false;
        for node in gm.graph().nodes() {
            if let Some(function) = node.function() {
                is_left |= rules.composite(function).is_some()
                    && !(function == operator::getitem
                        && is_structure(node.args()[0].as_node().and_then(|id| {
                            gm.graph().node(id).ok()?.meta::<ValueMeta>().cloned()
                        })));
            }
        }
        if !is_left {
            return Ok(gm);
        }
        let expander = Expander {
            gm: gm.clone(),
            params: params.to_vec(),
        };
        let trace = Trace::new(&expander as &dyn Recorder).unguarded();
        let trace = with_arguments(trace, params, args)?;
        gm = trace.graph_module()?;
        gm.apply(&MethodsToFunctions)?;
        gm.eliminate_dead_code()?;
    }
    Ok(gm)
}

pub(super) fn is_structure(meta: Option<ValueMeta>) -> bool {
    meta.is_some_and(|meta| meta.tensor().is_none())
}

/// A graph again, with functions that have no rule written by others.
#[derive(Clone)]
struct Expander {
    gm: GraphModule,
    params: Vec<ParamSpec>,
}

impl Recorder for Expander {
    fn name(&self) -> &str {
        self.gm.class_name()
    }

    fn params(&self) -> &[ParamSpec] {
        &self.params
    }

    fn input_trees(&self) -> &[Tree] {
        Module::input_trees(&self.gm)
    }

    fn module(&self) -> Option<&dyn Module> {
        Some(&self.gm)
    }

    fn record(&self, args: &[&Value], out: &mut Value) -> Result<()> {
        let rules = Rules::registered()?;
        let args: Vec<Value> = args.iter().map(|arg| (*arg).clone()).collect();
        let mut instead = |function: Function, args: &[Value]| -> Result<Option<Value>> {
            if function == operator::getitem && is_structure(meta_of(&args[0]).ok()) {
                return Ok(None);
            }
            match rules.composite(function) {
                Some(composite) => expanded(composite, function, args).map(Some),
                None => Ok(None),
            }
        };
        let mut replay = Replay::new(&mut instead);
        *out = self
            .gm
            .interpretation()
            .run(&mut replay, flat(&self.gm, &args)?)?;
        Ok(())
    }

    fn duplicate(&self) -> Box<dyn Recorder> {
        Box::new(self.clone())
    }
}
