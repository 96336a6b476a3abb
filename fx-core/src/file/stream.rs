//! Builds a graph's nodes while the file's text is read, so that they never all exist as JSON.
//!
//! Invariant: it yields exactly what the full JSON reader yields, or `None`; the full reader then
//! reports the error.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};

use super::graph::{GraphReader, NODE_TEXT};
use super::json::{Json, JsonMap};
use super::names::graph_module;
use super::names::node::ALL as NODE_FIELDS;
use super::upgrade::SCHEMA;
use crate::ir::graph::Graph;

/// The fields of a file in the current schema except its nodes, and the graph of these nodes.
/// `None` if the text is not as [`save`](crate::GraphModule::save) writes it, or nests deeper than
/// 128 levels.
pub(crate) fn parse(text: &str) -> Option<(JsonMap, Graph)> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let expected = text.len() / NODE_TEXT;
    let parsed = deserializer.deserialize_map(Fields { expected }).ok()?;
    deserializer.end().ok()?;
    Some(parsed)
}

/// The error that ends streaming; it is never shown.
fn otherwise<E: serde::de::Error>() -> E {
    E::custom("the text is to be read as a whole")
}

/// The fields of a file; `expected` is the expected number of nodes.
struct Fields {
    expected: usize,
}

impl<'de> Visitor<'de> for Fields {
    type Value = (JsonMap, Graph);

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut fields = JsonMap::new();
        let mut graph = None;
        while let Some(name) = map.next_key::<String>()? {
            if name == graph_module::NODES
                && graph.is_none()
                && fields.get(graph_module::SCHEMA) == Some(&SCHEMA.into())
            {
                let reader = GraphReader::new(&fields, self.expected).map_err(|_| otherwise())?;
                graph = Some(map.next_value_seed(NodeList(reader))?);
            } else if name == graph_module::NODES
                || fields.insert(name, map.next_value()?).is_some()
            {
                return Err(otherwise());
            }
        }
        Ok((fields, graph.ok_or_else(otherwise)?))
    }
}

/// The list of nodes; each is added to the graph as it is read.
struct NodeList(GraphReader);

impl<'de> DeserializeSeed<'de> for NodeList {
    type Value = Graph;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Graph, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for NodeList {
    type Value = Graph;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut nodes: A) -> Result<Graph, A::Error> {
        while let Some(parts) = nodes.next_element_seed(Node)? {
            let parts = parts.each_ref().map(Option::as_ref);
            self.0.node(parts).map_err(|_| otherwise())?;
        }
        Ok(self.0.finish())
    }
}

/// A node's fields, in the order of the table of names.
struct Node;

impl<'de> DeserializeSeed<'de> for Node {
    type Value = [Option<Json>; NODE_FIELDS.len()];

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Node {
    type Value = [Option<Json>; NODE_FIELDS.len()];

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut parts = [const { None }; NODE_FIELDS.len()];
        while let Some(at) = map.next_key_seed(FieldName)? {
            if parts[at].replace(map.next_value()?).is_some() {
                return Err(otherwise());
            }
        }
        Ok(parts)
    }
}

/// The position of a field's name in the table of names.
struct FieldName;

impl<'de> DeserializeSeed<'de> for FieldName {
    type Value = usize;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<usize, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for FieldName {
    type Value = usize;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<usize, E> {
        let at = NODE_FIELDS.iter().position(|known| *known == name);
        at.ok_or_else(otherwise)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::graph::to_graph;

    #[test]
    fn it_gives_what_the_whole_text_gives_or_nothing() -> crate::error::Result<()> {
        let tables = r#""locations":[["a.rs",1,2]],"scopes":[]"#;
        let nodes = r#""nodes":[{"op":"placeholder","target":"x","name":"x","at":0},{"op":"output","name":"output","args":["%x"]}]"#;
        let text = format!(r#"{{"schema":{SCHEMA},{tables},{nodes},"class":"C"}}"#);
        let whole: Json = text.parse().expect("it is JSON");
        let (fields, graph) = parse(&text).expect("it is as files are written");
        let expected = to_graph(whole.as_object().expect("it is an object"))?;
        assert_eq!(graph.to_string(), expected.to_string());
        assert_eq!((fields.len(), &fields["class"]), (4, &whole["class"]));

        let others = [
            format!(r#"{{"schema":0,{tables},{nodes}}}"#),
            format!(r#"{{"schema":{SCHEMA},{nodes},{tables}}}"#),
            format!(r#"{{"schema":{SCHEMA},{tables},{nodes},{nodes}}}"#),
            format!(r#"{{"schema":{SCHEMA},{tables},{nodes},"scopes":[]}}"#),
            text.replace("\"at\"", "\"what\""),
            text.replace("\"at\"", "\"name\""),
            text.replace("%x", "%y"),
            format!("{text} 1"),
            format!(r#"{{"schema":{SCHEMA},{tables}}}"#),
        ];
        for text in others {
            assert!(parse(&text).is_none(), "{text}");
        }
        Ok(())
    }
}
