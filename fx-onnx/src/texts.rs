//! `Texts`: a tensor of text. It is a value of the host: it has sizes and a text for each element, and no dtype.
//!
//! Invariant: there are as many texts as the sizes say.

use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, OnceLock};

use fx_nn::module::{Component, Walk, WalkMut};
use fx_nn::tensor::{FakeTensor, Object, TensorData, Traced, escape};
use fx_nn::value::{Arg, DType, Dim, IntoValue, Proxy, Value};
use fx_nn::{Error, Result};
use rustc_hash::FxHashMap;

/// The path by which files know the type.
const PATH: &str = "fx_onnx::Texts";

/// A tensor of text, which models take for columns of words and give for labels.
///
/// It lives outside of compiled code. A graph module takes a list of text, or lists of them, where it takes `Texts`.
///
/// ```
/// use fx_nn::trace::FromValue;
/// use fx_onnx::Texts;
/// let words = Texts::from(["sun", "rain"]);
/// assert_eq!((words.dims()?, &*words.items()?[1]), (&[2][..], "rain"));
/// let rows = Texts::new(["a", "b", "c", "d"], [2, 2])?.to_list()?;
/// assert_eq!(Vec::<Vec<String>>::from_value(rows)?, [["a", "b"], ["c", "d"]]);
/// assert!(Texts::new(["a"], [2]).is_err());
/// # Ok::<(), fx_nn::Error>(())
/// ```
#[derive(Clone)]
pub struct Texts(Repr);

#[derive(Clone)]
enum Repr {
    Known(Arc<Content>),
    Symbolic(Proxy),
    Fake(FakeTensor),
}

struct Content {
    items: Vec<Arc<str>>,
    shape: Vec<usize>,
    /// The first place of each text, once that was asked for.
    places: OnceLock<FxHashMap<Arc<str>, i64>>,
}

impl Texts {
    /// Texts of a shape, row by row.
    ///
    /// # Errors
    /// Returns an error if there are more or fewer texts than the shape has elements.
    pub fn new<S: Into<Arc<str>>>(
        items: impl IntoIterator<Item = S>,
        shape: impl Into<Vec<usize>>,
    ) -> Result<Self> {
        let items: Vec<Arc<str>> = items.into_iter().map(Into::into).collect();
        let shape = shape.into();
        let count = shape
            .iter()
            .try_fold(1usize, |n, size| n.checked_mul(*size));
        match count == Some(items.len()) {
            true => Ok(Texts::known(items, shape)),
            false => Err(Error::msg(format_args!(
                "{} texts are no tensor of shape {shape:?}",
                items.len()
            ))),
        }
    }

    fn known(items: Vec<Arc<str>>, shape: Vec<usize>) -> Self {
        Texts(Repr::Known(Arc::new(Content {
            items,
            shape,
            places: OnceLock::new(),
        })))
    }

    #[track_caller]
    fn content(&self, asked: &str) -> Result<&Content> {
        match &self.0 {
            Repr::Known(content) => Ok(content),
            Repr::Symbolic(proxy) => Err(escape(asked, *proxy)),
            Repr::Fake(fake) => Err(Error::msg(format_args!("{fake:?} has no text"))),
        }
    }

    /// The texts, row by row.
    ///
    /// # Errors
    /// Returns an error if a run alone has them.
    #[track_caller]
    pub fn items(&self) -> Result<&[Arc<str>]> {
        Ok(&self.content("items")?.items)
    }

    /// The sizes.
    ///
    /// # Errors
    /// As [`items`](Texts::items).
    #[track_caller]
    pub fn dims(&self) -> Result<&[usize]> {
        Ok(&self.content("dims")?.shape)
    }

    /// The first place of a text among all of them.
    ///
    /// # Errors
    /// As [`items`](Texts::items).
    #[track_caller]
    pub fn place_of(&self, text: &str) -> Result<Option<i64>> {
        let content = self.content("place_of")?;
        let places = content.places.get_or_init(|| {
            let mut places = FxHashMap::default();
            for (at, text) in content.items.iter().enumerate() {
                places.entry(text.clone()).or_insert(at as i64);
            }
            places
        });
        Ok(places.get(text).copied())
    }

    /// As a list of text; with several dims, lists of lists; without any, the text.
    ///
    /// # Errors
    /// As [`items`](Texts::items).
    #[track_caller]
    pub fn to_list(&self) -> Result<Value> {
        let Content { items, shape, .. } = self.content("to_list")?;
        let mut level: Vec<Value> = items.iter().cloned().map(Value::Str).collect();
        for (axis, size) in shape.iter().enumerate().rev() {
            let rows = shape[..axis].iter().product();
            let mut items = level.into_iter();
            level = (0..rows)
                .map(|_| Value::List(items.by_ref().take(*size).collect()))
                .collect();
        }
        level.pop().ok_or_else(|| Error::msg("a text is missing"))
    }

    /// Of a text, or of lists of them that have equal lengths.
    fn of_list(value: &Value) -> Option<Self> {
        let mut shape = Vec::new();
        let mut level = vec![value];
        while !level.is_empty()
            && level
                .iter()
                .all(|v| matches!(v, Value::List(_) | Value::Tuple(_)))
        {
            let items: Vec<&[Value]> = level
                .into_iter()
                .filter_map(|v| match v {
                    Value::List(items) | Value::Tuple(items) => Some(&**items),
                    _ => None,
                })
                .collect();
            let size = items.first()?.len();
            if items.iter().any(|items| items.len() != size) {
                return None;
            }
            shape.push(size);
            level = items.into_iter().flatten().collect();
        }
        let items = level.into_iter().map(|v| match v {
            Value::Str(text) => Some(text.clone()),
            _ => None,
        });
        Some(Texts::known(items.collect::<Option<_>>()?, shape))
    }

    /// The number of dims, the sizes, and each text after its length.
    fn bytes(&self) -> Result<Vec<u8>> {
        let content = self.content("to_data")?;
        let mut bytes = Vec::new();
        let mut put = |number: usize| bytes.extend((number as u64).to_le_bytes());
        put(content.shape.len());
        content.shape.iter().for_each(|size| put(*size));
        content.items.iter().for_each(|text| put(text.len()));
        for text in &content.items {
            bytes.extend(text.as_bytes());
        }
        Ok(bytes)
    }

    fn of_bytes(bytes: &[u8]) -> Result<Self> {
        let wrong = || Error::msg("the bytes of a tensor of text do not fit each other");
        let (numbers, _) = bytes.as_chunks::<8>();
        let number = |at: usize| {
            let number = numbers.get(at).copied().map(u64::from_le_bytes);
            number
                .and_then(|number| usize::try_from(number).ok())
                .ok_or_else(wrong)
        };
        let rank = number(0)?;
        if rank >= numbers.len() {
            return Err(wrong());
        }
        let shape = (0..rank)
            .map(|at| number(1 + at))
            .collect::<Result<Vec<_>>>()?;
        let count = shape
            .iter()
            .try_fold(1usize, |n, size| n.checked_mul(*size));
        let count = count
            .filter(|count| *count < numbers.len() - rank)
            .ok_or_else(wrong)?;
        let mut rest = &bytes[8 * (1 + rank + count)..];
        let mut items = Vec::with_capacity(count);
        for at in 0..count {
            let (text, behind) = rest
                .split_at_checked(number(1 + rank + at)?)
                .ok_or_else(wrong)?;
            items.push(Arc::from(std::str::from_utf8(text).map_err(|_| wrong())?));
            rest = behind;
        }
        match rest.is_empty() {
            true => Texts::new(items, shape),
            false => Err(wrong()),
        }
    }
}

impl fmt::Debug for Texts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Repr::Known(content) => write!(f, "Texts {:?} {:?}", content.shape, content.items),
            Repr::Symbolic(proxy) => write!(f, "Texts {proxy:?}"),
            Repr::Fake(fake) => write!(f, "Texts {fake:?}"),
        }
    }
}

impl PartialEq for Texts {
    /// Whether both are known, and have the same shape and the same texts.
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Repr::Known(a), Repr::Known(b)) => a.shape == b.shape && a.items == b.items,
            _ => false,
        }
    }
}

impl<S: Into<Arc<str>>, const N: usize> From<[S; N]> for Texts {
    fn from(items: [S; N]) -> Self {
        Vec::from(items).into()
    }
}

impl<S: Into<Arc<str>>> From<Vec<S>> for Texts {
    fn from(items: Vec<S>) -> Self {
        let items: Vec<Arc<str>> = items.into_iter().map(Into::into).collect();
        let shape = vec![items.len()];
        Texts::known(items, shape)
    }
}

impl Object for Texts {
    fn to_value(&self) -> Value {
        Value::object(self.clone())
    }

    fn object_id(&self) -> Option<u64> {
        match &self.0 {
            Repr::Known(content) => u64::try_from(Arc::as_ptr(content).addr()).ok(),
            Repr::Fake(fake) => fake.object_id(),
            Repr::Symbolic(_) => None,
        }
    }

    fn shape(&self) -> Option<&[usize]> {
        match &self.0 {
            Repr::Known(content) => Some(&content.shape),
            Repr::Fake(fake) => Object::shape(fake),
            Repr::Symbolic(_) => None,
        }
    }

    fn dims(&self) -> Option<Cow<'_, [Dim]>> {
        match &self.0 {
            Repr::Fake(fake) => Object::dims(fake),
            _ => {
                let dims = Object::shape(self)?.iter().copied().map(Dim::known);
                Some(dims.collect())
            }
        }
    }

    fn to_data(&self) -> Result<TensorData<'_>> {
        let bytes = self.bytes()?;
        TensorData::new(PATH, DType::U8, vec![bytes.len()], bytes)
    }

    fn proxy(&self) -> Option<Proxy> {
        match self.0 {
            Repr::Symbolic(proxy) => Some(proxy),
            _ => None,
        }
    }

    fn is_fake(&self) -> bool {
        matches!(self.0, Repr::Fake(_))
    }
}

impl Traced for Texts {
    fn from_proxy(proxy: Proxy) -> Self {
        Texts(Repr::Symbolic(proxy))
    }

    fn from_fake(fake: FakeTensor) -> Option<Self> {
        Some(Texts(Repr::Fake(fake)))
    }

    fn from_plain(value: &Value) -> Option<Self> {
        Texts::of_list(value)
    }
}

impl IntoValue for Texts {
    fn into_value(self) -> Value {
        match self.0 {
            Repr::Symbolic(proxy) => Value::Proxy(proxy),
            _ => Value::object(self),
        }
    }
}

impl Arg for Texts {}

impl Component for Texts {
    fn visit(&self, walk: &mut Walk<'_, '_>) {
        walk.tensor(self);
    }

    fn visit_mut(&mut self, walk: &mut WalkMut<'_, '_>) {
        walk.tensor(self);
    }

    fn duplicate(&self) -> Self {
        self.clone()
    }
}

fx_nn::register_tensor!(beside Texts, PATH, |data| {
    Texts::of_bytes(&data.bytes()?).map(Value::object)
});
