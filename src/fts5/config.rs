//! The declaration of an FTS5 table (`CREATE VIRTUAL TABLE ... USING fts5(...)`) and its `%_config` rows as data.
//!
//! The argument grammar is FTS5's own: only the space is white space, option names may be cut short (`tok=` is
//! `tokenize=`), and a quoted word before `=` is an error.

use crate::format::Value;

/// Why a list of module arguments is none that FTS5 accepts.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// An argument does not follow the grammar.
    #[error("parse error in {0:?}")]
    Parse(String),
    /// `name=value` with a name that FTS5 does not know.
    #[error("unrecognized option {0:?}")]
    UnknownOption(String),
    /// An option with a value that it does not take.
    #[error("malformed {0}=... directive")]
    BadValue(&'static str),
    /// An option that may stand only once stands twice.
    #[error("multiple {0}=... directives")]
    Twice(&'static str),
    /// `rank` or `rowid` as a column name.
    #[error("reserved fts5 column name: {0}")]
    ReservedColumn(String),
    /// A word behind a column name that is not UNINDEXED.
    #[error("unrecognized column option: {0}")]
    ColumnOption(String),
    /// Options that exclude each other.
    #[error("{0}")]
    Conflict(&'static str),
    /// A built-in tokenizer with arguments that it does not take.
    #[error("tokenizer {0} does not take these arguments")]
    TokenizerArguments(String),
}

/// A column of the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Its name, dequoted.
    pub name: String,
    /// Whether its text is in the index (not UNINDEXED).
    pub indexed: bool,
}

/// Where the text of the rows is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// In `%_content`: the only copy, user data.
    Stored,
    /// In a table or view of this name.
    External(String),
    /// Nowhere; the index is all there is.
    None,
    /// UNINDEXED columns in `%_content`, the text nowhere.
    Unindexed,
}

/// What a posting says beside its rowid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// Column and position of every token.
    Full,
    /// The columns a token occurs in.
    Columns,
    /// Nothing.
    None,
}

/// The highest number of prefix indexes that FTS5 takes.
pub const MAX_PREFIXES: usize = 31;

/// The declaration of an FTS5 table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// The columns in order.
    pub columns: Vec<Column>,
    /// Where the text is.
    pub content: Content,
    /// The column of an external content table that is the rowid; `rowid` unless declared.
    pub content_rowid: String,
    /// Name and arguments of the tokenizer; empty for the default, unicode61.
    pub tokenizer: Vec<String>,
    /// Lengths, in characters, of the prefix indexes.
    pub prefixes: Vec<u32>,
    /// What postings say.
    pub detail: Detail,
    /// Whether `%_docsize` exists.
    pub columnsize: bool,
    /// `locale=1`: `%_content` has a locale column for each indexed column.
    pub locale: bool,
    /// `tokendata=1`: a token ends at its first NUL for queries. The index itself is the same.
    pub tokendata: bool,
    /// `contentless_delete=1`: structure records of the second version, tombstones, origins in `%_docsize`.
    pub contentless_delete: bool,
}

impl Config {
    /// Reads the module arguments as they stand between the parentheses, split at the commas outside quotes.
    ///
    /// # Errors
    /// What FTS5 itself would refuse.
    pub fn parse<S: AsRef<str>>(arguments: &[S]) -> Result<Config, ConfigError> {
        let mut reader = Reader::default();
        for argument in arguments {
            reader.argument(argument.as_ref().trim_matches(|c: char| c.is_ascii_whitespace()))?;
        }
        reader.finish()
    }

    /// The names of the shadow tables that belong to this declaration, without the table's own name and underscore.
    #[must_use]
    pub fn shadow_tables(&self) -> Vec<&'static str> {
        let mut tables = vec!["data", "idx"];
        if matches!(self.content, Content::Stored | Content::Unindexed) {
            tables.push("content");
        }
        if self.columnsize {
            tables.push("docsize");
        }
        tables.push("config");
        tables
    }

    /// Columns of the `%_content` table behind `id`, as places of declared columns: text columns (`c0`, `c1`, ...) first, then
    /// locale columns. Empty when there is no such table.
    #[must_use]
    pub fn content_columns(&self) -> Vec<ContentColumn> {
        let mut out = Vec::new();
        if !matches!(self.content, Content::Stored | Content::Unindexed) {
            return out;
        }
        for (i, column) in self.columns.iter().enumerate() {
            if self.content == Content::Stored || !column.indexed {
                out.push(ContentColumn::Text(i));
            }
        }
        if self.locale {
            for (i, column) in self.columns.iter().enumerate() {
                if column.indexed {
                    out.push(ContentColumn::Locale(i));
                }
            }
        }
        out
    }
}

/// A column of `%_content`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContentColumn {
    /// The value of this declared column.
    Text(usize),
    /// The locale of this declared column.
    Locale(usize),
}

#[derive(Default)]
struct Reader {
    columns: Vec<Column>,
    content: Option<String>,
    content_rowid: Option<String>,
    tokenizer: Option<Vec<String>>,
    prefixes: Vec<u32>,
    detail: Option<Detail>,
    columnsize: Option<bool>,
    locale: bool,
    tokendata: bool,
    contentless_delete: bool,
    contentless_unindexed: bool,
}

impl Reader {
    fn argument(&mut self, text: &str) -> Result<(), ConfigError> {
        let broken = || ConfigError::Parse(text.to_owned());
        let (first, quoted, rest) = word(text).ok_or_else(broken)?;
        let mut rest = rest.trim_start_matches(' ');
        let option = rest.strip_prefix('=');
        if let Some(behind) = option {
            if quoted {
                return Err(broken());
            }
            rest = behind.trim_start_matches(' ');
        }
        let mut second = None;
        if !rest.is_empty() {
            let (value, _, end) = word(rest).ok_or_else(broken)?;
            if !end.is_empty() {
                return Err(broken());
            }
            second = Some(value);
        }
        if option.is_some() { self.option(&first, &second.unwrap_or_default()) } else { self.column(first, second) }
    }

    fn column(&mut self, name: String, option: Option<String>) -> Result<(), ConfigError> {
        if name.eq_ignore_ascii_case("rank") || name.eq_ignore_ascii_case("rowid") {
            return Err(ConfigError::ReservedColumn(name));
        }
        let indexed = match option {
            None => true,
            Some(word) if word.eq_ignore_ascii_case("unindexed") => false,
            Some(word) => return Err(ConfigError::ColumnOption(word)),
        };
        self.columns.push(Column { name, indexed });
        Ok(())
    }

    fn option(&mut self, name: &str, value: &str) -> Result<(), ConfigError> {
        let is = |full: &str| full.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name));
        if is("prefix") {
            return self.prefix(value);
        }
        if is("tokenize") {
            if self.tokenizer.is_some() {
                return Err(ConfigError::Twice("tokenize"));
            }
            self.tokenizer = Some(tokenizer_words(value).ok_or_else(|| ConfigError::Parse(value.to_owned()))?);
        } else if is("content") {
            if self.content.is_some() {
                return Err(ConfigError::Twice("content"));
            }
            self.content = Some(value.to_owned());
        } else if is("contentless_delete") {
            self.contentless_delete = flag(value, "contentless_delete")?;
        } else if is("contentless_unindexed") {
            self.contentless_unindexed = flag(value, "contentless_unindexed")?;
        } else if is("content_rowid") {
            if self.content_rowid.is_some() {
                return Err(ConfigError::Twice("content_rowid"));
            }
            self.content_rowid = Some(value.to_owned());
        } else if is("columnsize") {
            self.columnsize = Some(flag(value, "columnsize")?);
        } else if is("locale") {
            self.locale = flag(value, "locale")?;
        } else if is("detail") {
            self.detail = Some(detail(value)?);
        } else if is("tokendata") {
            self.tokendata = flag(value, "tokendata")?;
        } else {
            return Err(ConfigError::UnknownOption(name.to_owned()));
        }
        Ok(())
    }

    fn prefix(&mut self, value: &str) -> Result<(), ConfigError> {
        let bad = ConfigError::BadValue("prefix");
        let mut rest = value.trim_start_matches(' ');
        let mut first = true;
        loop {
            rest = rest.trim_start_matches(' ');
            match rest.strip_prefix(',') {
                Some(behind) if !first => rest = behind.trim_start_matches(' '),
                _ if rest.is_empty() => return Ok(()),
                _ => {}
            }
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            let length: u32 = rest.get(..digits).and_then(|d| d.parse().ok()).ok_or_else(|| bad.clone())?;
            if length == 0 || length >= 1000 || self.prefixes.len() >= MAX_PREFIXES {
                return Err(bad);
            }
            self.prefixes.push(length);
            rest = rest.get(digits..).unwrap_or_default();
            first = false;
        }
    }

    fn finish(self) -> Result<Config, ConfigError> {
        let contentless = self.content.as_deref() == Some("");
        if self.contentless_delete && !contentless {
            return Err(ConfigError::Conflict("contentless_delete=1 requires a contentless table"));
        }
        if self.contentless_delete && self.columnsize == Some(false) {
            return Err(ConfigError::Conflict("contentless_delete=1 is incompatible with columnsize=0"));
        }
        if self.contentless_unindexed && !contentless {
            return Err(ConfigError::Conflict("contentless_unindexed=1 requires a contentless table"));
        }
        let content = match self.content {
            None => Content::Stored,
            Some(name) if !name.is_empty() => Content::External(name),
            Some(_) if self.contentless_unindexed && self.columns.iter().any(|c| !c.indexed) => Content::Unindexed,
            Some(_) => Content::None,
        };
        Ok(Config {
            columns: self.columns,
            content,
            content_rowid: self.content_rowid.unwrap_or_else(|| "rowid".to_owned()),
            tokenizer: self.tokenizer.unwrap_or_default(),
            prefixes: self.prefixes,
            detail: self.detail.unwrap_or(Detail::Full),
            columnsize: self.columnsize.unwrap_or(true),
            locale: self.locale,
            tokendata: self.tokendata,
            contentless_delete: self.contentless_delete,
        })
    }
}

fn flag(value: &str, option: &'static str) -> Result<bool, ConfigError> {
    match value {
        "0" => Ok(false),
        "1" => Ok(true),
        _ => Err(ConfigError::BadValue(option)),
    }
}

fn detail(value: &str) -> Result<Detail, ConfigError> {
    let mut found = None;
    for (name, detail) in [("none", Detail::None), ("full", Detail::Full), ("columns", Detail::Columns)] {
        if name.get(..value.len()).is_some_and(|start| start.eq_ignore_ascii_case(value)) {
            if found.is_some() {
                return Err(ConfigError::BadValue("detail"));
            }
            found = Some(detail);
        }
    }
    found.ok_or(ConfigError::BadValue("detail"))
}

/// Whether FTS5 counts the byte to a bareword.
fn is_bareword(b: u8) -> bool {
    b >= 0x80 || b == 0x1a || b == b'_' || b.is_ascii_alphanumeric()
}

/// A bareword or quoted word at the start: its text, whether it was quoted, and what follows. An open quote at the end
/// of the text closes itself, as in FTS5.
fn word(text: &str) -> Option<(String, bool, &str)> {
    let open = text.chars().next()?;
    if matches!(open, '"' | '\'' | '[' | '`') {
        let close = if open == '[' { ']' } else { open };
        let (inner, rest, _) = quoted(text.get(1..)?, close);
        return Some((inner, true, rest));
    }
    let end = text.bytes().take_while(|&b| is_bareword(b)).count();
    if end == 0 {
        return None;
    }
    Some((text.get(..end)?.to_owned(), false, text.get(end..)?))
}

/// The text up to the closing quote, a doubled quote standing for itself; what follows; whether the quote was there.
fn quoted(text: &str, close: char) -> (String, &str, bool) {
    let mut out = String::new();
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        if c != close {
            out.push(c);
            continue;
        }
        match chars.peek() {
            Some(&(_, next)) if next == close => {
                out.push(close);
                chars.next();
            }
            _ => return (out, text.get(at..).and_then(|t| t.get(close.len_utf8()..)).unwrap_or_default(), true),
        }
    }
    (out, "", false)
}

/// The words of a `tokenize=` value: barewords and single-quoted literals.
fn tokenizer_words(value: &str) -> Option<Vec<String>> {
    let mut out = Vec::new();
    let mut rest = value;
    while !rest.is_empty() {
        let start = rest.trim_start_matches(' ');
        if start.starts_with('\'') {
            // An unclosed literal is an error here, unlike in `word`.
            let (inner, behind, closed) = quoted(start.get(1..)?, '\'');
            if !closed {
                return None;
            }
            out.push(inner);
            rest = behind;
        } else {
            let (bare, was_quoted, behind) = word(start)?;
            if was_quoted {
                return None;
            }
            out.push(bare);
            rest = behind;
        }
        rest = rest.trim_start_matches(' ');
    }
    Some(out)
}

/// The format versions of `%_config`.
pub const VERSION: i64 = 4;
/// The version that a table has from its first deletion under `secure-delete` on.
pub const VERSION_SECURE_DELETE: i64 = 5;

/// What the rows of `%_config` say, with FTS5's defaults for what they do not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The format version, `None` when there is no such row. FTS5 refuses all but 4 and 5.
    pub version: Option<i64>,
    /// The size of a leaf that the writer aims at, in bytes.
    pub pgsz: u32,
    /// Segments of one level that are merged in the background.
    pub automerge: u32,
    /// The `rank` function with its arguments, as it stands.
    pub rank: Option<String>,
    /// Whether deletions remove the postings at once.
    pub secure_delete: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Settings { version: None, pgsz: 4050, automerge: 4, rank: None, secure_delete: false }
    }
}

impl Settings {
    /// The settings that these rows `(k, v)` make. Keys and values that FTS5 would ignore are ignored.
    pub fn from_rows<'a>(rows: impl IntoIterator<Item = (&'a [u8], Value<'a>)>) -> Settings {
        let mut out = Settings::default();
        for (key, value) in rows {
            out.set(key, value);
        }
        out
    }

    /// Whether FTS5 opens a table with this version.
    #[must_use]
    pub fn version_is_known(&self) -> bool {
        matches!(self.version, Some(VERSION | VERSION_SECURE_DELETE))
    }

    fn set(&mut self, key: &[u8], value: Value<'_>) {
        let number = integer(value);
        if key.eq_ignore_ascii_case(b"version") {
            self.version = number;
        } else if key.eq_ignore_ascii_case(b"pgsz") {
            if let Some(n) = number.and_then(|n| u32::try_from(n).ok()).filter(|n| (32..=65536).contains(n)) {
                self.pgsz = n;
            }
        } else if key.eq_ignore_ascii_case(b"automerge") {
            if let Some(n) = number.and_then(|n| u32::try_from(n).ok()).filter(|&n| n <= 64) {
                self.automerge = if n == 1 { 4 } else { n };
            }
        } else if key.eq_ignore_ascii_case(b"secure-delete") {
            if let Some(n) = number.filter(|&n| n >= 0) {
                self.secure_delete = n != 0;
            }
        } else if key.eq_ignore_ascii_case(b"rank")
            && let Some(text) = value.as_text()
        {
            self.rank = Some(String::from_utf8_lossy(text).into_owned());
        }
    }
}

fn integer(value: Value<'_>) -> Option<i64> {
    match value {
        Value::Int(n) => Some(n),
        Value::Text(t) => std::str::from_utf8(t).ok()?.trim().parse().ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declarations_of_all_kinds() {
        let c = Config::parse(&["content", "tool_name", "tool_calls", "content='messages_fts_src'", "content_rowid='id'"]).unwrap();
        assert_eq!(c.columns.len(), 3);
        assert_eq!(c.content, Content::External("messages_fts_src".into()));
        assert_eq!(c.content_rowid, "id");
        let c = Config::parse(&[
            "\"a b\" UNINDEXED",
            "[x]",
            "tok = 'unicode61 remove_diacritics 2 tokenchars ''-_'''",
            "prefix='2 3,4'",
            "det=col",
        ])
        .unwrap();
        assert_eq!(c.columns, [Column { name: "a b".into(), indexed: false }, Column { name: "x".into(), indexed: true }]);
        assert_eq!(c.tokenizer, ["unicode61", "remove_diacritics", "2", "tokenchars", "-_"]);
        assert_eq!(c.prefixes, [2, 3, 4]);
        assert_eq!(c.detail, Detail::Columns);
        assert_eq!(c.content, Content::Stored);
        let c = Config::parse(&["a", "b UNINDEXED", "content=''", "contentless_delete=1", "contentless_unindexed=1"]).unwrap();
        assert_eq!((c.content, c.contentless_delete), (Content::Unindexed, true));
        assert_eq!(Config::parse(&["a", "content="]).unwrap().content, Content::None);
    }

    #[test]
    fn what_fts5_refuses() {
        for bad in ["rank", "a b", "'x'=1", "prefix=0", "prefix=x", "detail=", "columnsize=2", "nothing=1", "content==", "tokenize='\"x\"'"]
        {
            assert!(Config::parse(&[bad]).is_err(), "{bad}");
        }
        assert!(Config::parse(&["a", "contentless_delete=1"]).is_err());
        assert!(Config::parse(&["a", "content=x", "content=y"]).is_err());
    }
}
