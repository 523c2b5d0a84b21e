//! An image, read by offset.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::ids::wide;

/// An image, read by offset.
#[derive(Debug)]
pub struct Image {
    file: File,
    path: PathBuf,
    /// Its length in bytes.
    pub len: u64,
}

impl Image {
    /// Opens an image for reading.
    ///
    /// # Errors
    /// I/O; a pipe, whose length nobody knows.
    pub fn open(path: &Path) -> Result<Image> {
        let mut file = File::open(path).map_err(|e| Error::io(path, "open", e))?;
        // The end of a device is found by going there; its metadata do not say it.
        let len = file.seek(SeekFrom::End(0)).map_err(|e| Error::io(path, "read", e))?;
        Ok(Image { file, path: path.to_path_buf(), len })
    }

    /// Reads up to `want` bytes from an offset; fewer at the end.
    ///
    /// # Errors
    /// I/O.
    pub fn read(&mut self, offset: u64, want: usize, out: &mut Vec<u8>) -> Result<()> {
        out.clear();
        self.file.seek(SeekFrom::Start(offset)).map_err(|e| Error::io(&self.path, "read", e))?;
        (&mut self.file).take(wide(want)).read_to_end(out).map_err(|e| Error::io(&self.path, "read", e))?;
        Ok(())
    }

    /// Where it lies.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}
