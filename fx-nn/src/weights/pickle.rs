//! Python's pickles as flat lists of items: what PyTorch's files need of them, and nothing is run.
//!
//! Invariant: an item is held once and named by its number, however often the file says it; reading and dropping take no
//! stack, and memory in proportion to the file.

use std::collections::HashMap;

use fx_core::{Error, Result};

/// The number of an item.
pub(super) type Id = usize;

/// A value of a pickle, whose parts are other items.
#[derive(Debug)]
pub(super) enum Item<'p> {
    Int(i64),
    Text(&'p str),
    Class(&'p str, &'p str),
    Tuple(Vec<Id>),
    List(Vec<Id>),
    Dict(Vec<(Id, Id)>),
    Call {
        callable: Id,
        args: Id,
    },
    /// An object with a state that was set after it was made.
    Built {
        object: Id,
        state: Id,
    },
    /// What is kept beside the pickle, such as the elements of tensors.
    Persistent(Id),
    /// What no tensor is made of.
    Other,
}

/// The items of a pickle.
#[derive(Debug)]
pub(super) struct Pickle<'p> {
    items: Vec<Item<'p>>,
    root: Id,
}

impl<'p> Pickle<'p> {
    /// Reads a pickle of any protocol.
    ///
    /// # Errors
    /// Returns an error if it is cut, has an unknown instruction, or takes what is not there.
    pub fn read(bytes: &'p [u8]) -> Result<Self> {
        let mut machine = Machine {
            bytes,
            at: 0,
            items: Vec::new(),
            stack: Vec::new(),
            marks: Vec::new(),
            memo: HashMap::new(),
        };
        loop {
            let at = machine.at;
            let about = |error: Error| Error::msg(format_args!("byte {at} of its pickle: {error}"));
            if let Some(root) = machine.step().map_err(about)? {
                let items = machine.items;
                return Ok(Pickle { items, root });
            }
        }
    }

    /// The item that the pickle stands for.
    pub fn root(&self) -> &Item<'p> {
        self.item(self.root)
    }

    /// The classes and functions that it names, by module.
    pub fn classes(&self) -> impl Iterator<Item = (&'p str, &'p str)> {
        self.items.iter().filter_map(|item| match item {
            Item::Class(module, name) => Some((*module, *name)),
            _ => None,
        })
    }

    pub fn item(&self, id: Id) -> &Item<'p> {
        self.items.get(id).unwrap_or(&Item::Other)
    }
}

struct Machine<'p> {
    bytes: &'p [u8],
    at: usize,
    items: Vec<Item<'p>>,
    stack: Vec<Id>,
    /// How high the stack was at each mark.
    marks: Vec<usize>,
    memo: HashMap<usize, Id>,
}

fn cut() -> Error {
    Error::msg("the pickle ends too early")
}

impl<'p> Machine<'p> {
    fn take(&mut self, count: usize) -> Result<&'p [u8]> {
        let end = self.at.checked_add(count).ok_or_else(cut)?;
        let bytes = self.bytes.get(self.at..end).ok_or_else(cut)?;
        self.at = end;
        Ok(bytes)
    }

    /// A number of up to eight bytes without a sign.
    fn number(&mut self, width: usize) -> Result<usize> {
        let bytes = self.take(width)?.iter().rev();
        let number = bytes.fold(0u64, |number, byte| (number << 8) | u64::from(*byte));
        usize::try_from(number).map_err(|_| cut())
    }

    fn line(&mut self) -> Result<&'p str> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let end = rest.iter().position(|byte| *byte == b'\n');
        let line = self.take(end.ok_or_else(cut)? + 1)?;
        let line = std::str::from_utf8(line).map_err(Error::msg)?;
        Ok(line.trim_end_matches(['\n', '\r']))
    }

    fn line_number(&mut self) -> Result<usize> {
        self.line()?.parse().map_err(Error::msg)
    }

    fn push(&mut self, item: Item<'p>) {
        self.stack.push(self.items.len());
        self.items.push(item);
    }

    fn pop(&mut self) -> Result<Id> {
        let floor = self.marks.last().copied().unwrap_or(0);
        let top = self.stack.pop().filter(|_| self.stack.len() >= floor);
        top.ok_or_else(|| Error::msg("an instruction takes what is not there"))
    }

    fn top(&self) -> Result<Id> {
        let top = self.stack.last().copied();
        top.ok_or_else(|| Error::msg("an instruction takes what is not there"))
    }

    /// What is above the last mark.
    fn marked(&mut self) -> Result<Vec<Id>> {
        let mark = self.marks.pop();
        let mark = mark.ok_or_else(|| Error::msg("an instruction needs a mark"))?;
        Ok(self.stack.split_off(mark.min(self.stack.len())))
    }

    fn text(&mut self, length: usize) -> Result<()> {
        let bytes = self.take(length)?;
        let text = std::str::from_utf8(bytes);
        self.push(text.map_or(Item::Other, Item::Text));
        Ok(())
    }

    fn skip(&mut self, length: usize) -> Result<()> {
        self.take(length)?;
        self.push(Item::Other);
        Ok(())
    }

    fn long(&mut self, length: usize) -> Result<()> {
        let bytes = self.take(length)?;
        let sign = match bytes.last() {
            Some(last) if *last >= 0x80 => 0xff,
            _ => 0u8,
        };
        let mut wide = [sign; 8];
        let fits = bytes.len() <= 8 || bytes[8..].iter().all(|byte| *byte == sign);
        let count = bytes.len().min(8);
        wide[..count].copy_from_slice(&bytes[..count]);
        let number = i64::from_le_bytes(wide);
        let fits = fits && (number < 0) == (sign != 0);
        self.push(if fits { Item::Int(number) } else { Item::Other });
        Ok(())
    }

    fn tuple(&mut self, count: usize) -> Result<()> {
        let mut parts = vec![0; count];
        for part in parts.iter_mut().rev() {
            *part = self.pop()?;
        }
        self.push(Item::Tuple(parts));
        Ok(())
    }

    fn call(&mut self) -> Result<()> {
        let (args, callable) = (self.pop()?, self.pop()?);
        let dicts = ["OrderedDict", "defaultdict"];
        self.push(match self.items[callable] {
            Item::Class("collections", name) if dicts.contains(&name) => Item::Dict(Vec::new()),
            _ => Item::Call { callable, args },
        });
        Ok(())
    }

    fn extend_list(&mut self, parts: Vec<Id>) -> Result<()> {
        let list = self.top()?;
        match &mut self.items[list] {
            Item::List(own) => own.extend(parts),
            Item::Other | Item::Call { .. } | Item::Built { .. } => {}
            _ => return Err(Error::msg("items are added to what is no list")),
        }
        Ok(())
    }

    fn extend_dict(&mut self, parts: &[Id]) -> Result<()> {
        let dict = self.top()?;
        let (pairs, rest) = parts.as_chunks::<2>();
        if !rest.is_empty() {
            return Err(Error::msg("a key without a value"));
        }
        match &mut self.items[dict] {
            Item::Dict(own) => own.extend(pairs.iter().map(|[key, value]| (*key, *value))),
            Item::Other | Item::Call { .. } | Item::Built { .. } => {}
            _ => return Err(Error::msg("items are set in what is no dict")),
        }
        Ok(())
    }

    fn get(&mut self, place: usize) -> Result<()> {
        let id = self.memo.get(&place).copied();
        let id = id.ok_or_else(|| Error::msg(format_args!("nothing was kept as {place}")))?;
        self.stack.push(id);
        Ok(())
    }

    fn put(&mut self, place: usize) -> Result<()> {
        self.memo.insert(place, self.top()?);
        Ok(())
    }

    /// Runs an instruction; the result of the last one.
    fn step(&mut self) -> Result<Option<Id>> {
        let code = self.take(1)?[0];
        match code {
            b'.' => return self.pop().map(Some),
            // The version, and the length of what follows.
            0x80 => drop(self.take(1)?),
            0x95 => drop(self.take(8)?),
            b'(' => self.marks.push(self.stack.len()),
            b'0' => drop(self.pop()?),
            b'1' => drop(self.marked()?),
            b'2' => self.stack.push(self.top()?),
            b'N' | 0x88 | 0x89 => self.push(Item::Other),
            b'J' => {
                let number = self.number(4)? as u32;
                self.push(Item::Int(i64::from(number.cast_signed())));
            }
            b'K' | b'M' => {
                let number = self.number(if code == b'K' { 1 } else { 2 })?;
                self.push(Item::Int(number as i64));
            }
            0x8a | 0x8b => {
                let length = self.number(if code == 0x8a { 1 } else { 4 })?;
                self.long(length)?;
            }
            b'I' | b'L' => {
                let number = self.line()?.trim_end_matches('L').parse();
                self.push(number.map_or(Item::Other, Item::Int));
            }
            b'G' => self.skip(8)?,
            b'F' => {
                self.line()?;
                self.push(Item::Other);
            }
            b'X' | b'T' | 0x8c | b'U' | 0x8d => {
                let width = match code {
                    b'X' | b'T' => 4,
                    0x8d => 8,
                    _ => 1,
                };
                let length = self.number(width)?;
                self.text(length)?;
            }
            b'V' => {
                let text = self.line()?;
                self.push(Item::Text(text));
            }
            b'S' => {
                let text = self.line()?;
                let inner = text.get(1..text.len().saturating_sub(1));
                self.push(Item::Text(inner.unwrap_or_default()));
            }
            b'B' | b'C' | 0x8e | 0x96 => {
                let width = match code {
                    b'B' => 4,
                    b'C' => 1,
                    _ => 8,
                };
                let length = self.number(width)?;
                self.skip(length)?;
            }
            b')' => self.push(Item::Tuple(Vec::new())),
            0x85..=0x87 => self.tuple(usize::from(code - 0x84))?,
            b't' => {
                let parts = self.marked()?;
                self.push(Item::Tuple(parts));
            }
            b']' => self.push(Item::List(Vec::new())),
            b'l' => {
                let parts = self.marked()?;
                self.push(Item::List(parts));
            }
            b'a' => {
                let part = self.pop()?;
                self.extend_list(vec![part])?;
            }
            b'e' => {
                let parts = self.marked()?;
                self.extend_list(parts)?;
            }
            b'}' => self.push(Item::Dict(Vec::new())),
            b'd' => {
                let parts = self.marked()?;
                self.push(Item::Dict(Vec::new()));
                self.extend_dict(&parts)?;
            }
            b's' => {
                let (value, key) = (self.pop()?, self.pop()?);
                self.extend_dict(&[key, value])?;
            }
            b'u' => {
                let parts = self.marked()?;
                self.extend_dict(&parts)?;
            }
            // Sets.
            0x8f => self.push(Item::Other),
            0x90 => drop(self.marked()?),
            0x91 => {
                self.marked()?;
                self.push(Item::Other);
            }
            b'c' => {
                let (module, name) = (self.line()?, self.line()?);
                self.push(Item::Class(module, name));
            }
            0x93 => {
                let (name, module) = (self.pop()?, self.pop()?);
                self.push(match (&self.items[module], &self.items[name]) {
                    (Item::Text(module), Item::Text(name)) => Item::Class(module, name),
                    _ => Item::Other,
                });
            }
            b'R' | 0x81 => self.call()?,
            0x92 => {
                self.pop()?;
                self.call()?;
            }
            b'b' => {
                let (state, object) = (self.pop()?, self.pop()?);
                match self.items[object] {
                    // The attributes of a dict are not among its items.
                    Item::Dict(_) => self.stack.push(object),
                    _ => self.push(Item::Built { object, state }),
                }
            }
            b'Q' => {
                let id = self.pop()?;
                self.push(Item::Persistent(id));
            }
            b'h' | b'j' => {
                let place = self.number(if code == b'h' { 1 } else { 4 })?;
                self.get(place)?;
            }
            b'g' => {
                let place = self.line_number()?;
                self.get(place)?;
            }
            b'q' | b'r' => {
                let place = self.number(if code == b'q' { 1 } else { 4 })?;
                self.put(place)?;
            }
            b'p' => {
                let place = self.line_number()?;
                self.put(place)?;
            }
            0x94 => self.put(self.memo.len())?,
            other => {
                return Err(Error::msg(format_args!(
                    "the instruction {other:#04x} is not one of a PyTorch file"
                )));
            }
        }
        Ok(None)
    }
}
