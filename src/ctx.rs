//! What a run carries with it: limits with their reasons, progress, cancellation.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Bounds of every loop over evidence. Reaching one is finding `limit-reached`, never a silent stop.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Limits {
    /// Findings kept in full for each (code, object); all are counted. 100 is what a person still reads.
    pub findings_per_code: usize,
    /// Levels of a b-tree. SQLite itself stops at 20; a full tree of 2^32 pages of 512 bytes has fewer.
    pub depth: u32,
    /// Bytes of one payload. SQLite's own limit for a row is 2^31 - 1.
    pub payload: u64,
    /// Memory for sorts and caches, in bytes, before they spill to temporary files.
    pub memory: usize,
    /// Worker threads; 0 asks the machine.
    pub threads: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { findings_per_code: 100, depth: 40, payload: 0x7fff_ffff, memory: 128 << 20, threads: 0 }
    }
}

/// Receives what a long run is doing. All calls are cheap and may come from any thread.
pub trait Progress: Send + Sync {
    /// A new phase begins, `total` units long (0: unknown).
    fn phase(&self, name: &'static str, total: u64);
    /// `done` more units of the current phase are finished.
    fn advance(&self, done: u64);
    /// The current phase is over.
    fn finish(&self);
}

/// Progress that nobody watches.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Progress for Silent {
    fn phase(&self, _: &'static str, _: u64) {}
    fn advance(&self, _: u64) {}
    fn finish(&self) {}
}

/// Handed down through all layers.
#[derive(Clone)]
pub struct Ctx {
    /// Bounds of loops and memory.
    pub limits: Limits,
    /// Where progress goes.
    pub progress: Arc<dyn Progress>,
    cancelled: Arc<AtomicBool>,
}

impl fmt::Debug for Ctx {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ctx").field("limits", &self.limits).finish_non_exhaustive()
    }
}

impl Default for Ctx {
    fn default() -> Self {
        Ctx::new(Limits::default(), Arc::new(Silent))
    }
}

impl Ctx {
    /// Bytes that one sort may take before it spills: half of the memory limit, at least 1 MiB.
    #[must_use]
    pub fn sort_memory(&self) -> usize {
        (self.limits.memory >> 1).max(1 << 20)
    }

    /// A context with these limits and this watcher.
    #[must_use]
    pub fn new(limits: Limits, progress: Arc<dyn Progress>) -> Ctx {
        Ctx { limits, progress, cancelled: Arc::new(AtomicBool::new(false)) }
    }

    /// The flag that ends the run early when set, for signal handlers.
    #[must_use]
    pub fn cancel_flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.cancelled)
    }

    /// Whether the run was asked to end.
    #[must_use]
    #[inline]
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }

    /// `Err(Cancelled)` when the run was asked to end; called once a page or a leaf, not once a row.
    ///
    /// # Errors
    /// [`crate::error::Error::Cancelled`].
    pub fn check(&self) -> Result<(), crate::error::Error> {
        if self.is_cancelled() { Err(crate::error::Error::Cancelled) } else { Ok(()) }
    }
}
