//! Every table as a file of its own in a folder.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use super::{RowSink, RowView, TableInfo};
use crate::error::{Error, Result};

/// Bytes of a file's name that come from the name of its table, at most.
const NAME: usize = 120;

/// Opens a file for each table. A name of the evidence decides no path: what is not a plain letter, digit, `-` or `_`
/// stands in percent form, and a number follows where two names would be one.
#[expect(missing_debug_implementations, reason = "the maker of sinks has none")]
pub struct Folder<M> {
    folder: PathBuf,
    ending: &'static str,
    make: M,
    taken: BTreeSet<String>,
    current: Option<Box<dyn RowSink>>,
}

impl<M: FnMut(BufWriter<File>) -> Box<dyn RowSink> + Send> Folder<M> {
    /// A sink over the files of `folder`, which is made when it is missing. Their names end with `.` and `ending`; `make` gives
    /// the sink that writes one of them.
    ///
    /// # Errors
    /// When the folder cannot be made.
    pub fn new(folder: &Path, ending: &'static str, make: M) -> Result<Folder<M>> {
        std::fs::create_dir_all(folder).map_err(|e| Error::io(folder, "create", e))?;
        Ok(Folder { folder: folder.to_path_buf(), ending, make, taken: BTreeSet::new(), current: None })
    }
}

/// The name of a file for a table.
fn file_name(table: &str, taken: &mut BTreeSet<String>) -> String {
    let mut plain = String::new();
    for byte in table.bytes() {
        if plain.len() >= NAME {
            break;
        }
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' => plain.push(char::from(byte)),
            b'-' if !plain.is_empty() => plain.push('-'),
            _ => plain.push_str(&format!("%{byte:02X}")),
        }
    }
    if plain.is_empty() {
        plain.push_str("table");
    }
    let mut name = plain.clone();
    let mut n = 2_u32;
    // Some file systems take `T` and `t` for one name.
    while !taken.insert(name.to_ascii_lowercase()) {
        name = format!("{plain}~{n}");
        n = n.saturating_add(1);
    }
    name
}

impl<M: FnMut(BufWriter<File>) -> Box<dyn RowSink> + Send> RowSink for Folder<M> {
    fn begin_table(&mut self, table: &TableInfo) -> Result<()> {
        let name = file_name(&table.name, &mut self.taken);
        let path = self.folder.join(format!("{name}.{}", self.ending));
        let file = match File::create_new(&path) {
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => return Err(Error::Exists { path }),
            made => made.map_err(|e| Error::io(&path, "create", e))?,
        };
        let mut sink = (self.make)(BufWriter::with_capacity(1 << 16, file));
        sink.begin_table(table)?;
        self.current = Some(sink);
        Ok(())
    }

    fn row(&mut self, row: &RowView<'_>) -> Result<()> {
        self.current.as_mut().map_or(Ok(()), |sink| sink.row(row))
    }

    fn end_table(&mut self) -> Result<()> {
        self.current.take().map_or(Ok(()), |mut sink| {
            sink.end_table()?;
            sink.finish()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_of_the_evidence_is_no_path() {
        let mut taken = BTreeSet::new();
        assert_eq!(file_name("messages", &mut taken), "messages");
        assert_eq!(file_name("Messages", &mut taken), "Messages~2");
        assert_eq!(file_name("../etc/x", &mut taken), "%2E%2E%2Fetc%2Fx");
        assert_eq!(file_name("-rf", &mut taken), "%2Drf");
        assert_eq!(file_name("a\nb", &mut taken), "a%0Ab");
        assert_eq!(file_name("", &mut taken), "table");
        assert!(file_name(&"ü".repeat(500), &mut taken).len() < 140);
    }
}
