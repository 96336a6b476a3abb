//! `DecodeStream`: text of tokens that come one by one.
//!
//! Invariant: what was given is text that no later token changes.

use fx_core::Result;

use super::{Kind, Tokenizer};

/// Decodes tokens as they come, and gives text once its characters are whole.
///
/// It goes on where other text ended: a space before the first word stays.
///
/// ```
/// use fx_lm::Tokenizer;
/// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/bytes.gguf");
/// let tokenizer = Tokenizer::of_gguf(path)?;
/// let mut stream = tokenizer.stream(true);
/// let mut texts = Vec::new();
/// for id in tokenizer.encode("né", false)? {
///     texts.push(stream.push(id)?);
/// }
/// assert_eq!(texts, ["n", "", "é"]);
/// assert_eq!(stream.finish()?, "");
/// # Ok::<(), fx_core::Error>(())
/// ```
pub struct DecodeStream<'a> {
    tokenizer: &'a Tokenizer,
    skip_special: bool,
    /// Of a GGUF file: bytes that are no whole character yet.
    bytes: Vec<u8>,
    /// Of a folder: tokens whose text may change, after some whose text was given.
    ids: Vec<u32>,
    /// How many of them have no text yet.
    pending: usize,
}

/// How many tokens a character may take before it is given up.
const LONGEST: usize = 8;

impl<'a> DecodeStream<'a> {
    pub(super) fn new(tokenizer: &'a Tokenizer, skip_special: bool) -> Self {
        DecodeStream {
            tokenizer,
            skip_special,
            bytes: Vec::new(),
            ids: Vec::new(),
            pending: 0,
        }
    }

    /// Takes a token, and gives the text that is whole now; it may be empty.
    ///
    /// # Errors
    /// Returns an error if there is no such token.
    pub fn push(&mut self, id: u32) -> Result<String> {
        match &self.tokenizer.kind {
            Kind::Gguf(gguf) => {
                gguf.piece(id, self.skip_special, &mut self.bytes)?;
                let whole = whole(&self.bytes);
                let text = String::from_utf8_lossy(&self.bytes[..whole]).into_owned();
                self.bytes.drain(..whole);
                Ok(text)
            }
            Kind::Folder(_) => {
                self.ids.push(id);
                self.pending += 1;
                self.given(self.pending < LONGEST)
            }
        }
    }

    /// The text of what is left: bytes that never became a character are U+FFFD.
    ///
    /// # Errors
    /// Returns an error if tokens cannot be decoded.
    pub fn finish(mut self) -> Result<String> {
        match &self.tokenizer.kind {
            Kind::Gguf(_) => Ok(String::from_utf8_lossy(&self.bytes).into_owned()),
            Kind::Folder(_) => self.given(false),
        }
    }

    /// The text behind what was given; none if it `waits` for the end of a character.
    fn given(&mut self, waits: bool) -> Result<String> {
        let before = &self.ids[..self.ids.len() - self.pending];
        let before = self.tokenizer.decode(before, self.skip_special)?;
        let text = self.tokenizer.decode(&self.ids, self.skip_special)?;
        if waits && text.ends_with('\u{FFFD}') {
            return Ok(String::new());
        }
        let given = text.get(before.len()..).unwrap_or_default().to_string();
        // The tokens of one text stay, since what a token is may depend on the one before it.
        self.ids.drain(..self.ids.len() - self.pending);
        self.pending = 0;
        Ok(given)
    }
}

/// How many bytes are whole characters, or none that could become one.
fn whole(bytes: &[u8]) -> usize {
    let mut done = 0;
    loop {
        match std::str::from_utf8(&bytes[done..]) {
            Ok(rest) => return done + rest.len(),
            Err(error) => {
                done += error.valid_up_to();
                match error.error_len() {
                    Some(wrong) => done += wrong,
                    None => return done,
                }
            }
        }
    }
}
