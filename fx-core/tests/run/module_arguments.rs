//! Modules as arguments of wrapped functions: a `get_attr` node that names a module.

use fx_core::ir::Graph;
use fx_core::module::ModuleArg;
use fx_core::passes::{Split, SplitOptions};
use fx_core::prelude::*;
use fx_core::run::PlainInterpreter;
use insta::assert_snapshot;

use crate::run::{equal, my_module};
use crate::support::modules::{Linear, Scale};
use crate::support::*;

#[wrap]
fn twice(layer: &Linear, x: &Array) -> Result<Array> {
    layer.forward(&layer.forward(x)?)
}

#[derive(Module)]
struct Net {
    layers: Vec<Linear>,
}

#[trace]
impl Net {
    fn forward(&self, x: &Array) -> Result<Array> {
        let h = self.layers[1].forward(x)?;
        twice(&self.layers[0], &h)? + twice(&self.layers[1], x)?
    }
}

fn net() -> Net {
    Net {
        layers: vec![Linear::square(2, 2.0), Linear::square(2, -3.0)],
    }
}

fn text<T>(result: Result<T>) -> String {
    result.err().map(|e| e.to_string()).unwrap_or_default()
}

#[test]
fn a_function_takes_a_module_by_its_path() -> Result<()> {
    let mut gm = symbolic_trace(&net())?;
    assert_snapshot!(gm.graph().to_string(), @"
    graph():
        %x : &Array [num_users=2] = placeholder[target=x]
        %layers_1 : [num_users=1] = call_module[target=layers.1](args = (%x,), kwargs = {})
        %layers_0 : [num_users=1] = get_attr[target=layers.0]
        %twice : [num_users=1] = call_function[target=behaviour::run::module_arguments::twice](args = (%layers_0, %layers_1), kwargs = {})
        %layers_2 : [num_users=1] = get_attr[target=layers.1]
        %twice_1 : [num_users=1] = call_function[target=behaviour::run::module_arguments::twice](args = (%layers_2, %x), kwargs = {})
        %add : [num_users=1] = call_function[target=fx_core::operator::add](args = (%twice, %twice_1), kwargs = {})
        return %add
    ");
    assert_snapshot!(gm.code(), @"
    pub fn forward(&self, x: &Array) -> Result<Array> {
        let layers_1 = self.layers[1].forward(x)?;
        let layers_0 = &self.layers[0];
        let twice = behaviour::run::module_arguments::twice(layers_0, &layers_1)?;  drop(layers_1);
        let layers_2 = &self.layers[1];
        let twice_1 = behaviour::run::module_arguments::twice(layers_2, x)?;
        let add = (&twice + &twice_1)?;  drop(twice); drop(twice_1);
        Ok(add)
    }
    ");
    let expected = net().forward(&x())?;
    equal(&gm.forward(&x())?, &expected)?;
    equal(&gm.interpret(&mut PlainInterpreter, &x())?, &expected)?;
    equal(&gm.clone().forward(&x())?, &expected)?;
    let again = gm.transform(&mut PlainInterpreter)?;
    assert_eq!(again.graph().to_string(), gm.graph().to_string());
    equal(&again.forward(&x())?, &expected)?;
    let retraced = symbolic_trace(&gm)?;
    assert_eq!(retraced.graph().to_string(), gm.graph().to_string());
    equal(&retraced.forward(&x())?, &expected)?;
    let parsed: Graph = gm.graph().to_string().parse()?;
    equal(&GraphModule::of(&net(), parsed)?.forward(&x())?, &expected)?;

    assert_eq!(gm.delete_all_unused_submodules(), 0);
    gm.propagate_shapes(&x())?;
    gm.eliminate_dead_code()?;
    equal(&gm.forward(&x())?, &expected)?;

    // A module that is changed in place is passed to the function in its new state.
    let mut changed = net();
    changed.layers[0].weight = Linear::square(2, 7.0).weight;
    gm.set_parameter("layers.0.weight", &changed.layers[0].weight)?;
    equal(&gm.forward(&x())?, &changed.forward(&x())?)?;
    changed.layers[1].bias = None;
    gm.submodule_as_mut::<Linear>("layers.1")?.bias = None;
    equal(&gm.forward(&x())?, &changed.forward(&x())?)?;

    assert!(gm.delete_submodule("layers.0"));
    assert_snapshot!(without_lines(text(gm.lint())), @"while checking %layers_0 (fx-core/tests/run/module_arguments.rs:_): no parameter, buffer or constant at `layers.0`; add it with `GraphModule::set_parameter` or `set_buffer`");
    gm.add_submodule("layers.0", my_module())?;
    assert_snapshot!(without_lines(text(gm.forward::<Array>(&x()))), @"while executing %twice (fx-core/tests/run/module_arguments.rs:_): `behaviour::run::module_arguments::twice` takes `Linear` as `layer`, found a `MyModule`; it takes (layer: &Linear, x: &Array)");
    Ok(())
}

#[test]
fn a_module_that_is_not_of_the_root_is_refused() {
    let other = Linear::square(2, 1.0);
    let f = traced!(move |x: &Array| twice(&other, x));
    assert_snapshot!(without_lines(text(symbolic_trace(f))), @"while tracing `twice` (fx-core/tests/run/module_arguments.rs:_): a function is given a `Linear` that is not a module inside of the traced root: make it a field of the root, so that the graph can name it");
}

#[wrap]
fn scaled(layer: &Scale, x: Float) -> Result<Float> {
    layer.forward(x)? + 1.0
}

#[wrap]
fn run_graph(inner: &GraphModule, x: Float) -> Result<Float> {
    inner.forward(x)
}

#[derive(Module)]
struct Root {
    scale: Scale,
    inner: GraphModule,
}

#[trace]
impl Root {
    fn forward(&self, x: Float) -> Result<Float> {
        run_graph(&self.inner, scaled(&self.scale, x)?)
    }
}

#[test]
fn a_module_that_a_function_takes_is_saved_and_split_off() -> Result<()> {
    let inner = symbolic_trace(traced!(|x: Float| x - 2.0))?;
    let root = Root {
        scale: Scale { by: 3.0 },
        inner,
    };
    let gm = symbolic_trace(&root)?;
    assert_eq!(gm.forward::<f64>(5.0)?, 14.0);
    let loaded = GraphModule::from_bytes(&gm.to_bytes()?)?;
    assert_eq!(loaded.graph().to_string(), gm.graph().to_string());
    assert_eq!(loaded.forward::<f64>(5.0)?, 14.0);

    let split = gm.split(&SplitOptions::new(), |node| {
        match node.name().to_string().as_str() {
            "scaled" => Some("part"),
            _ => None,
        }
    })?;
    let Split {
        module: mut split,
        parts,
        ..
    } = split;
    assert_eq!(parts.len(), 1);
    assert_eq!(split.forward::<f64>(5.0)?, 14.0);
    let part = split.submodule_as::<GraphModule>(&parts[0].path)?;
    assert!(part.submodule("scale").is_ok());
    split.inline_module(parts[0].call)?;
    assert_eq!(split.forward::<f64>(5.0)?, 14.0);

    // An interpreter sees the module as a value.
    let mut run = gm.interpretation().keep_values();
    run.run(&mut PlainInterpreter, vec![Value::of(5.0)])?;
    let node = gm.graph().find_name("scale").map(|node| node.id());
    let value = node.and_then(|node| run.value(node));
    let given = value.and_then(Value::downcast_ref::<ModuleArg>);
    assert!(given.is_some_and(|given| {
        let module: &dyn std::any::Any = given.module();
        module.is::<Scale>()
    }));
    Ok(())
}
