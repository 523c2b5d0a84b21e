//! Mapped files that may shrink.
//!
//! A page of a mapping that the file does not have any more, or that the medium does not give back, raises SIGBUS. The
//! handler here puts zeros under the rest of such a mapping and marks it as lost; the run goes on to its end, where
//! [`Mapping::is_lost`] tells that nothing of it holds. A fault at any other address is left to whoever had the signal before.
#![expect(unsafe_code, reason = "the one mapping of the product, and the handler without which it could end in a signal")]

use std::fs::File;
use std::io;
use std::ops::Deref;

use memmap2::Mmap;

/// A file mapped for reading.
#[derive(Debug)]
pub(super) struct Mapping {
    /// Dropped first: the handler must not know a mapping that is gone.
    #[cfg(unix)]
    watch: guard::Watch,
    map: Mmap,
}

impl Mapping {
    /// Maps a file; `None` when it cannot be guarded, so that it has to be copied.
    ///
    /// # Errors
    /// What the system answers.
    #[cfg(unix)]
    pub(super) fn new(file: &File) -> io::Result<Option<Mapping>> {
        // SAFETY: the map is read-only, and the file is either private to this process (unnamed) or a regular file that was
        // readable throughout a moment ago and that no process holds open for writing. A later writer is noticed by
        // `recheck`, a file that shrinks by the guard.
        let map = unsafe { Mmap::map(file) }?;
        Ok(guard::watch(&map).map(|watch| Mapping { watch, map }))
    }

    /// Maps a file. The system keeps a mapped file from shrinking.
    ///
    /// # Errors
    /// What the system answers.
    #[cfg(not(unix))]
    pub(super) fn new(file: &File) -> io::Result<Option<Mapping>> {
        // SAFETY: as on Unix; the system refuses to cut a mapped file.
        Ok(Some(Mapping { map: unsafe { Mmap::map(file) }? }))
    }

    /// Whether a part of the file was gone when it was read.
    #[cfg(unix)]
    pub(super) fn is_lost(&self) -> bool {
        self.watch.is_lost()
    }

    /// Whether a part of the file was gone when it was read.
    #[cfg(not(unix))]
    #[expect(clippy::unused_self, reason = "the same call on all systems")]
    pub(super) fn is_lost(&self) -> bool {
        false
    }
}

impl Deref for Mapping {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.map
    }
}

#[cfg(unix)]
mod guard {
    use std::ptr;
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    use libc::{c_int, c_void, siginfo_t};

    /// A mapping that the handler knows.
    struct Slot {
        taken: AtomicBool,
        /// Its first address; 0 while there is none.
        start: AtomicUsize,
        end: AtomicUsize,
        lost: AtomicBool,
    }

    /// Mappings at one time: the inputs of a run or two, and the copies that are read back. One more is not mapped.
    static SLOTS: [Slot; 256] = [const {
        Slot { taken: AtomicBool::new(false), start: AtomicUsize::new(0), end: AtomicUsize::new(0), lost: AtomicBool::new(false) }
    }; 256];

    /// What answered the signal before, and the size of a memory page; `None` when no handler can be set.
    static BEFORE: OnceLock<Option<(libc::sigaction, usize)>> = OnceLock::new();

    /// A watched mapping, until it is dropped.
    pub(super) struct Watch(&'static Slot);

    impl std::fmt::Debug for Watch {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.debug_tuple("Watch").field(&self.is_lost()).finish()
        }
    }

    impl Watch {
        pub(super) fn is_lost(&self) -> bool {
            self.0.lost.load(Ordering::Acquire)
        }
    }

    impl Drop for Watch {
        fn drop(&mut self) {
            self.0.start.store(0, Ordering::Release);
            self.0.taken.store(false, Ordering::Release);
        }
    }

    /// Watches these bytes; `None` when there is no handler or no room.
    pub(super) fn watch(bytes: &[u8]) -> Option<Watch> {
        (*BEFORE.get_or_init(install))?;
        let free = |s: &&Slot| s.taken.compare_exchange(false, true, Ordering::AcqRel, Ordering::Relaxed).is_ok();
        let slot = SLOTS.iter().find(free)?;
        let start = bytes.as_ptr().addr();
        slot.lost.store(false, Ordering::Release);
        slot.end.store(start.saturating_add(bytes.len()), Ordering::Release);
        slot.start.store(start, Ordering::Release);
        Some(Watch(slot))
    }

    #[expect(clippy::as_conversions, reason = "the address of a function, which a sigaction holds as a number")]
    fn install() -> Option<(libc::sigaction, usize)> {
        // SAFETY: sysconf reads a constant of the system.
        let page = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).ok().filter(|p| p.is_power_of_two())?;
        let handler: extern "C" fn(c_int, *mut siginfo_t, *mut c_void) = on_bus;
        // SAFETY: all fields of a sigaction are numbers, for which zero is a value; the handler calls nothing that is not
        // allowed in one, and the pointers are to live values.
        unsafe {
            let mut new: libc::sigaction = std::mem::zeroed();
            let mut old: libc::sigaction = std::mem::zeroed();
            new.sa_sigaction = (handler as *const ()).addr();
            new.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
            libc::sigemptyset(&raw mut new.sa_mask);
            (libc::sigaction(libc::SIGBUS, &raw const new, &raw mut old) == 0).then_some((old, page))
        }
    }

    extern "C" fn on_bus(_: c_int, info: *mut siginfo_t, _: *mut c_void) {
        // The handler may run before `install` has returned; nothing is watched by then.
        let Some(Some((before, page))) = BEFORE.get() else { return };
        // SAFETY: the system hands a SA_SIGINFO handler a valid siginfo.
        let at = unsafe { (*info).si_addr() }.addr();
        for slot in &SLOTS {
            let (start, end) = (slot.start.load(Ordering::Acquire), slot.end.load(Ordering::Acquire));
            if start == 0 || at < start || at >= end {
                continue;
            }
            let from = at & !page.wrapping_sub(1);
            // SAFETY: the range lies within a mapping of this process that is read-only and stays mapped while its slot is
            // set; what takes its place is as long, and memmap2 unmaps both alike.
            let zeros = unsafe {
                libc::mmap(
                    ptr::without_provenance_mut(from),
                    end.wrapping_sub(from),
                    libc::PROT_READ,
                    libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED,
                    -1,
                    0,
                )
            };
            if zeros != libc::MAP_FAILED {
                slot.lost.store(true, Ordering::Release);
                return;
            }
        }
        // Not ours: the instruction runs again and finds the handler that was there before.
        // SAFETY: it is the action that the system gave for this signal.
        unsafe { libc::sigaction(libc::SIGBUS, before, ptr::null_mut()) };
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_shrinks_reads_as_zeros_and_says_so() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("in.db");
        std::fs::write(&path, vec![7_u8; 1 << 20]).unwrap();
        let map = Mapping::new(&File::open(&path).unwrap()).unwrap().unwrap();
        assert_eq!((map.first(), map.last()), (Some(&7), Some(&7)));
        std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(8192).unwrap();
        assert!(!map.is_lost());
        assert_eq!(map.iter().filter(|b| **b == 7).count(), 8192);
        assert!(map.is_lost());
        let other = Mapping::new(&File::open(&path).unwrap()).unwrap().unwrap();
        assert!(!other.is_lost() && other.iter().all(|b| *b == 7));
    }
}
