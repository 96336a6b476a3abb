//! A parser of StableHLO's generic form: it checks structure, types and uses, and the shapes of operations that it knows.
//!
//! Invariant: it reads the text alone, and knows nothing of the writer.

use std::collections::HashMap;

/// An operation, with those of its regions.
#[derive(Debug)]
#[allow(dead_code, reason = "each test uses a part of it")]
pub struct Op {
    pub name: String,
    /// The names of what it takes and of what it gives.
    pub takes: Vec<String>,
    pub gives: Vec<String>,
    pub attributes: String,
    pub operands: Vec<Type>,
    pub results: Vec<Type>,
    pub regions: Vec<Vec<Op>>,
    /// The names of the arguments of each region.
    pub inner: Vec<Vec<String>>,
}

/// The type of a tensor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Type {
    pub element: String,
    pub shape: Vec<i64>,
}

/// A program: the types of its arguments and results, and its operations.
#[derive(Debug)]
#[allow(dead_code, reason = "each test uses a part of it")]
pub struct Program {
    pub names: Vec<String>,
    pub arguments: Vec<Type>,
    pub results: Vec<Type>,
    pub ops: Vec<Op>,
}

/// Parses a program.
pub fn parse(text: &str) -> Result<Program, String> {
    let mut parser = Parser {
        text,
        at: 0,
        scopes: vec![HashMap::new()],
    };
    let program = parser.program();
    program.map_err(|error| {
        let line = text[..parser.at].lines().count();
        let rest = text[parser.at..].lines().next().unwrap_or_default();
        format!("line {line}: {error}, before `{rest}`")
    })
}

struct Parser<'t> {
    text: &'t str,
    at: usize,
    scopes: Vec<HashMap<String, Type>>,
}

impl<'t> Parser<'t> {
    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    fn space(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
    }

    fn is_next(&mut self, token: &str) -> bool {
        self.space();
        let is_next = self.rest().starts_with(token);
        if is_next {
            self.at += token.len();
        }
        is_next
    }

    fn expect(&mut self, token: &str) -> Result<(), String> {
        match self.is_next(token) {
            true => Ok(()),
            false => Err(format!("`{token}` was expected")),
        }
    }

    fn word(&mut self, is_part: impl Fn(char) -> bool) -> &'t str {
        self.space();
        let rest = self.rest();
        let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    fn value(&mut self) -> Result<String, String> {
        self.expect("%")?;
        let name = self.word(|c| c.is_ascii_alphanumeric() || c == '_' || c == '#');
        Ok(format!("%{name}"))
    }

    fn ty(&mut self) -> Result<Type, String> {
        self.expect("tensor<")?;
        let inner = self.word(|c| c != '>');
        self.expect(">")?;
        let mut parts: Vec<&str> = inner.split('x').collect();
        let element = parts.pop().unwrap_or_default().to_string();
        let known = [
            "i1", "i8", "i16", "i32", "i64", "ui8", "ui16", "ui32", "ui64", "f16", "bf16", "f32",
            "f64",
        ];
        if !known.contains(&&*element) {
            return Err(format!("`{element}` is no element type"));
        }
        let shape = parts.iter().map(|part| {
            part.parse::<i64>()
                .map_err(|_| format!("`{part}` is no size"))
        });
        let shape: Vec<i64> = shape.collect::<Result<_, _>>()?;
        Ok(Type { element, shape })
    }

    fn types(&mut self) -> Result<Vec<Type>, String> {
        if !self.is_next("(") {
            return Ok(vec![self.ty()?]);
        }
        let mut all = Vec::new();
        while !self.is_next(")") {
            all.push(self.ty()?);
            self.is_next(",");
        }
        Ok(all)
    }

    fn arguments(&mut self) -> Result<(Vec<String>, Vec<Type>), String> {
        let (mut names, mut all) = (Vec::new(), Vec::new());
        while !self.is_next(")") {
            let name = self.value()?;
            self.expect(":")?;
            let ty = self.ty()?;
            self.attributes()?;
            self.define(name.clone(), ty.clone())?;
            names.push(name);
            all.push(ty);
            self.is_next(",");
        }
        Ok((names, all))
    }

    /// Attributes in braces, which may hold braces.
    fn attributes(&mut self) -> Result<(), String> {
        if !self.is_next("{") {
            return Ok(());
        }
        let mut depth = 1;
        for (at, letter) in self.rest().char_indices() {
            match letter {
                '{' => depth += 1,
                '}' => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                self.at += at + 1;
                return Ok(());
            }
        }
        Err("attributes do not end".to_string())
    }

    fn define(&mut self, name: String, ty: Type) -> Result<(), String> {
        if self.scopes.iter().any(|scope| scope.contains_key(&name)) {
            return Err(format!("{name} is defined twice"));
        }
        self.scopes
            .last_mut()
            .expect("the program is a scope")
            .insert(name, ty);
        Ok(())
    }

    fn find(&self, name: &str) -> Result<Type, String> {
        let found = self.scopes.iter().rev().find_map(|scope| scope.get(name));
        found
            .cloned()
            .ok_or_else(|| format!("{name} is not defined here"))
    }

    fn program(&mut self) -> Result<Program, String> {
        self.expect("module")?;
        if self.is_next("attributes {") {
            self.word(|c| c != '}');
            self.expect("}")?;
        }
        self.expect("{")?;
        while self.is_next("sdy.mesh") {
            self.word(|c| c != '\n');
        }
        self.expect("func.func public @main(")?;
        let (names, arguments) = self.arguments()?;
        self.expect("->")?;
        self.expect("(")?;
        let mut results = Vec::new();
        while !self.is_next(")") {
            results.push(self.ty()?);
            self.attributes()?;
            self.is_next(",");
        }
        self.expect("{")?;
        let ops = self.ops()?;
        self.expect("}")?;
        let last = ops.last().ok_or("no operations")?;
        if last.name != "func.return" || last.operands != results {
            return Err("the results are not those of the return".to_string());
        }
        // Only places follow.
        while self.is_next("#loc") {
            self.word(|c| c != '\n');
        }
        self.space();
        match self.rest().is_empty() {
            true => Ok(Program {
                names,
                arguments,
                results,
                ops,
            }),
            false => Err("something follows the module".to_string()),
        }
    }

    fn ops(&mut self) -> Result<Vec<Op>, String> {
        let mut all = Vec::new();
        while !self.is_next("}") {
            all.push(self.op()?);
        }
        Ok(all)
    }

    fn op(&mut self) -> Result<Op, String> {
        let mut names = Vec::new();
        self.space();
        if self.rest().starts_with('%') {
            let name = self.value()?;
            match self.is_next(":") {
                true => {
                    let count: usize = self
                        .word(|c| c.is_ascii_digit())
                        .parse()
                        .map_err(|_| "a count was expected")?;
                    names.extend((0..count).map(|at| format!("{name}#{at}")));
                }
                false => names.push(name),
            }
            self.expect("=")?;
        }
        self.expect("\"")?;
        let name = self.word(|c| c != '"').to_string();
        self.expect("\"")?;
        self.expect("(")?;
        let mut operands = Vec::new();
        while !self.is_next(")") {
            operands.push(self.value()?);
            self.is_next(",");
        }
        let mut attributes = String::new();
        if self.is_next("<{") {
            let rest = self.rest();
            let end = rest.find("}>").ok_or("attributes do not end")?;
            attributes = rest[..end].to_string();
            self.at += end;
            self.expect("}>")?;
        }
        let (mut regions, mut inner) = (Vec::new(), Vec::new());
        if self.is_next("({") {
            loop {
                self.scopes.push(HashMap::new());
                let mut own = Vec::new();
                if self.is_next("^bb0(") {
                    (own, _) = self.arguments()?;
                    self.expect(":")?;
                }
                inner.push(own);
                let ops = self.ops()?;
                self.scopes.pop();
                if ops.last().is_none_or(|op| op.name != "stablehlo.return") {
                    return Err("a region that returns nothing".to_string());
                }
                regions.push(ops);
                if self.is_next(")") {
                    break;
                }
                self.expect(",")?;
                self.expect("{")?;
            }
        }
        self.expect(":")?;
        let given = self.types()?;
        self.expect("->")?;
        let results = self.types()?;
        if self.is_next("loc(") {
            self.word(|c| c != ')');
            self.expect(")")?;
        }
        let found: Vec<Type> = operands
            .iter()
            .map(|name| self.find(name))
            .collect::<Result<_, _>>()?;
        if found != given {
            return Err(format!(
                "`{name}` takes {given:?}, and its operands are {found:?}"
            ));
        }
        if names.len() != results.len() {
            return Err(format!(
                "`{name}` has {} names for {} results",
                names.len(),
                results.len()
            ));
        }
        let op = Op {
            name,
            takes: operands,
            gives: names.clone(),
            attributes,
            operands: given,
            results: results.clone(),
            regions,
            inner,
        };
        check(&op)?;
        for (name, ty) in names.into_iter().zip(results) {
            self.define(name, ty)?;
        }
        Ok(op)
    }
}

/// The numbers of an attribute, such as `dimensions = array<i64: 1, 2>`.
fn numbers(op: &Op, name: &str) -> Vec<i64> {
    let Some((_, rest)) = op.attributes.split_once(&format!("{name} = ")) else {
        return Vec::new();
    };
    let rest = rest
        .strip_prefix("array<i64")
        .or_else(|| rest.strip_prefix('['));
    let rest = rest.unwrap_or_default();
    let end = rest.find(['>', ']']).unwrap_or(0);
    let items = rest[..end].trim_start_matches(':').split(',');
    items.filter_map(|item| item.trim().parse().ok()).collect()
}

/// Checks that the shapes of an operation fit.
#[allow(
    clippy::collapsible_match,
    reason = "each operation is a case, and what is wrong is inside"
)]
fn check(op: &Op) -> Result<(), String> {
    let wrong = |what: &str| {
        Err(format!(
            "`{}`: {what}: {:?} -> {:?}",
            op.name, op.operands, op.results
        ))
    };
    let short = op.name.strip_prefix("stablehlo.").unwrap_or(&op.name);
    match short {
        "add" | "subtract" | "multiply" | "divide" | "maximum" | "minimum" | "power" | "and"
        | "or" | "xor" | "remainder" | "atan2" => {
            if op.operands != [op.results[0].clone(), op.results[0].clone()] {
                return wrong("both operands have the type of the result");
            }
        }
        "compare" => {
            if op.operands[0] != op.operands[1]
                || op.results[0].element != "i1"
                || op.results[0].shape != op.operands[0].shape
            {
                return wrong("a comparison of equal types gives truths");
            }
        }
        "select" => {
            if op.operands[0].element != "i1"
                || op.operands[1..] != [op.results[0].clone(), op.results[0].clone()]
            {
                return wrong("a mask picks from two of the result's type");
            }
        }
        "reshape" => {
            let count = |ty: &Type| ty.shape.iter().product::<i64>();
            if count(&op.operands[0]) != count(&op.results[0]) {
                return wrong("the elements stay");
            }
        }
        "transpose" => {
            let order = numbers(op, "permutation");
            let moved: Vec<i64> = order
                .iter()
                .map(|dim| op.operands[0].shape[*dim as usize])
                .collect();
            if moved != op.results[0].shape {
                return wrong("the dims are in another order");
            }
        }
        "broadcast_in_dim" => {
            let dims = numbers(op, "broadcast_dimensions");
            let fits = dims.len() == op.operands[0].shape.len()
                && dims
                    .iter()
                    .zip(&op.operands[0].shape)
                    .all(|(dim, size)| *size == 1 || op.results[0].shape[*dim as usize] == *size);
            if !fits {
                return wrong("a dim of another size than one is repeated");
            }
        }
        "dot_general" => {
            let (left, right) = (&op.operands[0].shape, &op.operands[1].shape);
            let pairs = [("batching", true), ("contracting", false)];
            let mut shape = Vec::new();
            let (mut used_left, mut used_right) = (Vec::new(), Vec::new());
            for (kind, stays) in pairs {
                let (a, b) = (
                    numbers(op, &format!("lhs_{kind}_dimensions")),
                    numbers(op, &format!("rhs_{kind}_dimensions")),
                );
                for (a, b) in a.iter().zip(&b) {
                    if left[*a as usize] != right[*b as usize] {
                        return wrong("dims of a pair have one size");
                    }
                    if stays {
                        shape.push(left[*a as usize]);
                    }
                }
                used_left.extend(a);
                used_right.extend(b);
            }
            let rest = |shape: &[i64], used: &[i64]| -> Vec<i64> {
                (0..shape.len())
                    .filter(|dim| !used.contains(&(*dim as i64)))
                    .map(|dim| shape[dim])
                    .collect()
            };
            shape.extend(rest(left, &used_left));
            shape.extend(rest(right, &used_right));
            if shape != op.results[0].shape {
                return wrong("a product has batches, then the rest of both");
            }
        }
        "reduce" => {
            let dims = numbers(op, "dimensions");
            let rest: Vec<i64> = (0..op.operands[0].shape.len())
                .filter(|dim| !dims.contains(&(*dim as i64)))
                .map(|dim| op.operands[0].shape[dim])
                .collect();
            if rest != op.results[0].shape || op.regions.len() != 1 {
                return wrong("the dims of a reduction go");
            }
        }
        "while" => {
            if op.operands != op.results || op.regions.len() != 2 {
                return wrong("a loop gives what it takes");
            }
        }
        "case" => {
            for region in &op.regions {
                if region.last().map(|op| &op.operands) != Some(&op.results) {
                    return wrong("each branch gives the results");
                }
            }
        }
        _ => {}
    }
    Ok(())
}
