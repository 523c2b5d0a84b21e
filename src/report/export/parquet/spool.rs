//! The rows of a table, waiting in an unnamed temporary file until their types are known.

use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::format::record::encode_record;
use crate::format::{Fields, Value};
use crate::ids::{narrow, wide};

/// Rows as records of the file format, each behind its length.
#[derive(Debug)]
pub(super) struct Spool {
    folder: PathBuf,
    out: BufWriter<File>,
    record: Vec<u8>,
}

/// The rows once more, from the first.
#[derive(Debug)]
pub(super) struct Spooled {
    folder: PathBuf,
    input: BufReader<File>,
    fields: Fields,
    record: Vec<u8>,
}

impl Spool {
    pub(super) fn new(folder: &Path) -> Result<Spool> {
        let file = tempfile::tempfile_in(folder).map_err(|e| Error::io(folder, "create a temporary file in", e))?;
        Ok(Spool { folder: folder.to_path_buf(), out: BufWriter::with_capacity(1 << 16, file), record: Vec::new() })
    }

    pub(super) fn push<'v>(&mut self, values: impl Iterator<Item = Value<'v>> + Clone) -> Result<()> {
        self.record.clear();
        encode_record(&mut self.record, values);
        let len = wide(self.record.len()).to_le_bytes();
        let done = self.out.write_all(&len).and_then(|()| self.out.write_all(&self.record));
        done.map_err(|e| Error::io(&self.folder, "write a temporary file in", e))
    }

    pub(super) fn read(self) -> Result<Spooled> {
        let Spool { folder, out, record } = self;
        let rewound = out.into_inner().map_err(std::io::IntoInnerError::into_error).and_then(|mut file| {
            file.seek(SeekFrom::Start(0))?;
            Ok(file)
        });
        let file = rewound.map_err(|e| Error::io(&folder, "write a temporary file in", e))?;
        Ok(Spooled { folder, input: BufReader::with_capacity(1 << 16, file), fields: Fields::new(), record })
    }
}

impl Spooled {
    /// Hands the next row to `f`; its length in bytes, `None` behind the last row.
    pub(super) fn next(&mut self, f: impl FnOnce(&mut dyn Iterator<Item = Value<'_>>)) -> Result<Option<usize>> {
        let failed = |e| Error::io(&self.folder, "read a temporary file in", e);
        let mut len = [0_u8; 8];
        match self.input.read_exact(&mut len) {
            Ok(()) => {}
            Err(e) if e.kind() == std::io::ErrorKind::UnexpectedEof => return Ok(None),
            Err(e) => return Err(failed(e)),
        }
        let len = u64::from_le_bytes(len);
        self.record.clear();
        self.record.resize(narrow(len), 0);
        self.input.read_exact(&mut self.record).map_err(failed)?;
        if self.fields.read(&self.record, len).is_err() {
            return Err(failed(std::io::ErrorKind::InvalidData.into()));
        }
        f(&mut self.fields.values(&self.record));
        Ok(Some(self.record.len()))
    }
}
