//! How much of a write-ahead log the main file does not have yet.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;

use crate::bytes::slice;
use crate::ctx::Ctx;
use crate::error::{Error, Result};
use crate::evidence::{InputFile, OpenOptions, WalIndex};
use crate::finding::Findings;
use crate::format::DatabaseHeader;
use crate::ids::{FrameNo, PageNo, wide};

use super::holders::Which;

/// The log beside a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct LogState {
    /// Its size in bytes.
    pub bytes: u64,
    /// Commits that SQLite would read.
    pub commits: u64,
    /// Frames up to the last of them.
    pub frames: u64,
    /// Pages whose newest committed image is not what the main file holds: not checkpointed.
    pub pages_waiting: u64,
    /// Whether the log has more bytes than those frames: an older round, or a transaction that did not commit.
    pub has_rest: bool,
}

impl LogState {
    /// Reads the log beside `db`; `None` when there is none.
    ///
    /// # Errors
    /// Cancellation. A file that cannot be read counts as absent; `check` says why.
    pub fn read(db: &Path, ctx: &Ctx) -> Result<Option<LogState>> {
        let path = Which::Wal.of(db);
        if !path.is_file() {
            return Ok(None);
        }
        let mut options = OpenOptions::new();
        options.hash = false;
        let open = |path: &Path| match InputFile::open(path, ctx, &options) {
            Ok(file) => Ok(Some(file)),
            Err(Error::Cancelled) => Err(Error::Cancelled),
            Err(_) => Ok(None),
        };
        let Some(log) = open(&path)? else { return Ok(None) };
        let main = open(db)?;
        let main = main.as_ref().map_or(&[][..], InputFile::bytes);
        Ok(Some(LogState::of(main, log.bytes())))
    }

    /// The state of a log over a main file.
    #[must_use]
    pub fn of(main: &[u8], log: &[u8]) -> LogState {
        let none = LogState { bytes: wide(log.len()), commits: 0, frames: 0, pages_waiting: 0, has_rest: log.len() > 32 };
        let hint = DatabaseHeader::read(main).ok().and_then(|h| h.page_size());
        let Some(index) = WalIndex::read(log, hint, &mut Findings::new(0)) else { return none };
        let Some(last) = index.last_commit() else { return none };
        let mut newest: BTreeMap<u32, u32> = BTreeMap::new();
        for (i, frame) in (1_u32..=last.frame.0).zip(&index.frames) {
            newest.insert(frame.page, i);
        }
        let size = index.page_size.len();
        let mut waiting = 0_u64;
        for (page, frame) in newest {
            let Some(page) = PageNo::new(page).filter(|p| p.get() <= last.pages) else { continue };
            let image = index.frame(FrameNo(frame)).map(|f| f.image);
            let own = page.index().checked_mul(size).and_then(|at| slice(main, at, size));
            if image.is_some() && image != own {
                waiting = waiting.saturating_add(1);
            }
        }
        let frames = u64::from(last.frame.0);
        LogState { commits: wide(index.commits.len()), frames, pages_waiting: waiting, has_rest: wide(index.frames.len()) > frames, ..none }
    }
}
