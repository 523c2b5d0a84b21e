//! Locks on the files of a database, from `/proc/locks` (proc_locks(5)), by SQLite's own lock bytes.
//!
//! Rollback mode locks bytes of the database file from 0x40000000 on: PENDING, RESERVED, and 510 bytes of SHARED. WAL mode
//! locks bytes 120 to 128 of the `-shm`: write, checkpoint, recover, five readers, and one that says that the file is in use.

use super::holders::{Seen, Which};

/// Lines of `/proc/locks` that are read: a busy server has some thousands.
const LINES: usize = 1 << 20;

/// First of the lock bytes of the database file.
const PENDING: u64 = 0x4000_0000;

/// A line of `/proc/locks`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockLine {
    /// Number of the lock; those that wait for it have the same.
    pub number: u64,
    /// Whether it is not held, and waits for the lock with its number.
    pub waits: bool,
    /// POSIX, OFDLCK, FLOCK, LEASE.
    pub kind: String,
    /// Whether it excludes all others.
    pub exclusive: bool,
    /// The process; `None` for an open-file-description lock.
    pub pid: Option<u32>,
    /// Device, as `major:minor`, both hexadecimal there.
    pub device: (u32, u32),
    /// Inode.
    pub inode: u64,
    /// First byte.
    pub first: u64,
    /// Last byte.
    pub last: u64,
}

impl LockLine {
    fn read(line: &str) -> Option<LockLine> {
        let mut words = line.split_ascii_whitespace();
        let number = words.next()?.strip_suffix(':')?.parse().ok()?;
        let mut kind = words.next()?;
        let waits = kind == "->";
        if waits {
            kind = words.next()?;
        }
        let _advisory = words.next()?;
        let exclusive = matches!(words.next()?, "WRITE" | "RW");
        let pid = words.next()?.parse::<i64>().ok().and_then(|p| u32::try_from(p).ok()).filter(|p| *p != 0);
        let mut place = words.next()?.split(':');
        let major = u32::from_str_radix(place.next()?, 16).ok()?;
        let minor = u32::from_str_radix(place.next()?, 16).ok()?;
        let inode = place.next()?.parse().ok()?;
        let first = words.next()?.parse().ok()?;
        let last = match words.next()? {
            "EOF" => u64::MAX,
            n => n.parse().ok()?,
        };
        Some(LockLine { number, waits, kind: kind.to_owned(), exclusive, pid, device: (major, minor), inode, first, last })
    }

    /// All lines of a text.
    #[must_use]
    pub fn parse(text: &str) -> Vec<LockLine> {
        text.lines().take(LINES).filter_map(LockLine::read).collect()
    }

    fn covers(&self, first: u64, last: u64) -> bool {
        self.first <= last && self.last >= first
    }
}

/// A lock on a file of the database, in SQLite's words.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Lock {
    /// Which file.
    pub file: Which,
    /// The processes that may hold it: one, or those with the file open where the kernel does not say.
    pub pids: Vec<u32>,
    /// Whether it is waited for and not held.
    pub waits: bool,
    /// The processes that hold what it waits for.
    pub waits_for: Vec<u32>,
    /// What the lock means to SQLite.
    pub meaning: &'static str,
    /// Whether it keeps others from writing.
    pub blocks_writers: bool,
}

/// The locks on what the holders have open. `text` is that of `/proc/locks`.
#[must_use]
pub fn on(text: &str, seen: &Seen) -> Vec<Lock> {
    let lines = LockLine::parse(text);
    let of = |line: &LockLine| -> Option<(Which, Vec<u32>)> {
        // The device of a line is that of the super block; some file systems give another in stat, so that the inode together
        // with a process that has it open decides.
        let open = || seen.holders.iter().filter(|h| h.inode.1 == line.inode);
        let same_device = |dev: u64| (major(dev), minor(dev)) == line.device;
        let holder = open().find(|h| same_device(h.inode.0) || Some(h.pid) == line.pid)?;
        let mut pids: Vec<u32> = match line.pid {
            Some(pid) => vec![pid],
            None => open().map(|h| h.pid).collect(),
        };
        pids.dedup();
        Some((holder.file, pids))
    };
    let mut out = Vec::new();
    for line in &lines {
        let Some((file, pids)) = of(line) else { continue };
        let waits_for = if line.waits {
            let held = lines.iter().filter(|l| l.number == line.number && !l.waits);
            held.filter_map(of).flat_map(|(_, pids)| pids).collect()
        } else {
            Vec::new()
        };
        let (meaning, blocks_writers) = meaning(file, line);
        out.push(Lock { file, pids, waits: line.waits, waits_for, meaning, blocks_writers: blocks_writers && !line.waits });
    }
    out
}

fn meaning(file: Which, line: &LockLine) -> (&'static str, bool) {
    if line.kind == "FLOCK" || line.kind == "LEASE" {
        return ("a lock that SQLite does not use", false);
    }
    let covers = |from: u64, to: u64| line.covers(from, to);
    match file {
        Which::Main => {
            let (reserved, shared) = (PENDING.saturating_add(1), PENDING.saturating_add(2));
            let in_shared = covers(shared, shared.saturating_add(509));
            match (line.exclusive, in_shared) {
                (true, true) => ("EXCLUSIVE: it writes, nobody may read", true),
                (false, true) => ("SHARED: it reads, or holds the file in WAL mode", false),
                _ if covers(reserved, reserved) => ("RESERVED: it prepares a write, others may read", true),
                _ if covers(PENDING, PENDING) => ("PENDING: it waits for readers to end, nobody may start to read", true),
                _ => ("a lock on bytes that SQLite does not lock", false),
            }
        }
        Which::Shm => match (line.exclusive, line.first) {
            (true, _) if covers(120, 120) && covers(122, 122) => ("all locks of the log: recovery, or a change of the journal mode", true),
            (true, _) if covers(120, 120) => ("the write lock of the log: it writes", true),
            (true, _) if covers(121, 121) => ("the checkpoint lock: it copies the log into the file", false),
            (true, _) if covers(122, 122) => ("the recovery lock: it reads the log anew", true),
            (false, _) if covers(123, 127) => ("a read mark: it reads, and a checkpoint cannot pass it", false),
            (true, _) if covers(123, 127) => ("a read mark, being set", false),
            _ if covers(128, 128) => ("the log is in use", false),
            _ => ("a lock on bytes that SQLite does not lock", false),
        },
        _ => ("a lock that SQLite does not use", false),
    }
}

/// The numbers of a device, as Linux packs them into `st_dev`.
fn major(dev: u64) -> u32 {
    let n = ((dev >> 8) & 0xfff) | ((dev >> 32) & 0xffff_f000);
    u32::try_from(n).unwrap_or(u32::MAX)
}

fn minor(dev: u64) -> u32 {
    let n = (dev & 0xff) | ((dev >> 12) & 0xffff_ff00);
    u32::try_from(n).unwrap_or(u32::MAX)
}

/// The text of `/proc/locks`; `None` where there is none.
#[must_use]
pub fn live() -> Option<String> {
    std::fs::read_to_string("/proc/locks").ok()
}
