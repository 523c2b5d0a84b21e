//! Where a database lives: the mount below it, the processes that hold it, the locks on it, and logs that were deleted while
//! a process still has them open.
//!
//! [`mounts`] needs only the text of a mountinfo file and works on every system; [`holders`] and [`locks`] look at the live
//! `/proc` of Linux and say so where there is none. Nothing here opens a file of the evidence for writing.

mod diagnose;
pub mod doctor;
pub mod folders;
pub mod holders;
pub mod journal_mode;
pub mod locks;
pub mod log_state;
pub mod mounts;
pub mod rescue;
pub mod text;
