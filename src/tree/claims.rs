//! Which tree has which page, and as what.

use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};

use crate::format::PageKind;
use crate::ids::{PageNo, idx};

/// Who owns a page: the place of a tree in the list of trees, from 0. The freelist and the pages of the file format itself
/// have owners of their own behind the trees.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Owner(pub u32);

impl Owner {
    /// The file itself: pointer-map pages and the lock-byte page.
    pub const FILE: Owner = Owner(u32::MAX - 2);
    /// The freelist.
    pub const FREELIST: Owner = Owner(u32::MAX - 1);
}

/// What a page is in the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// Nothing claims it.
    Orphan,
    /// Type 5.
    TableInterior,
    /// Type 13.
    TableLeaf,
    /// Type 2.
    IndexInterior,
    /// Type 10.
    IndexLeaf,
    /// A page of an overflow chain.
    Overflow,
    /// A freelist trunk.
    FreelistTrunk,
    /// A freelist leaf.
    FreelistLeaf,
    /// A pointer-map page.
    PointerMap,
    /// The page of the lock bytes at 1 GiB.
    LockByte,
    /// A tree leads to it and nothing can be read through it.
    Unreadable,
}

impl Role {
    /// All roles, in the order of their numbers.
    pub const ALL: [Role; 11] = [
        Role::Orphan,
        Role::TableInterior,
        Role::TableLeaf,
        Role::IndexInterior,
        Role::IndexLeaf,
        Role::Overflow,
        Role::FreelistTrunk,
        Role::FreelistLeaf,
        Role::PointerMap,
        Role::LockByte,
        Role::Unreadable,
    ];

    /// The role of a b-tree page.
    #[must_use]
    pub const fn of_page(kind: PageKind) -> Role {
        match kind {
            PageKind::TableInterior => Role::TableInterior,
            PageKind::TableLeaf => Role::TableLeaf,
            PageKind::IndexInterior => Role::IndexInterior,
            PageKind::IndexLeaf => Role::IndexLeaf,
        }
    }

    /// The word that maps and reports use.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Role::Orphan => "orphan",
            Role::TableInterior => "table-interior",
            Role::TableLeaf => "table-leaf",
            Role::IndexInterior => "index-interior",
            Role::IndexLeaf => "index-leaf",
            Role::Overflow => "overflow",
            Role::FreelistTrunk => "freelist-trunk",
            Role::FreelistLeaf => "freelist-leaf",
            Role::PointerMap => "pointer-map",
            Role::LockByte => "lock-byte",
            Role::Unreadable => "unreadable",
        }
    }

    fn number(self) -> u8 {
        Role::ALL.iter().position(|r| *r == self).and_then(|n| u8::try_from(n).ok()).unwrap_or(0)
    }
}

/// Who has each page and as what. Shared by all workers: a page is given to whoever claims it first, and a worker that
/// comes second is told who has it. Where that happens the result depends on the order, so the survey then claims anew in
/// key order on one thread.
#[derive(Debug)]
pub struct Claims {
    owner: Vec<AtomicU32>,
    role: Vec<AtomicU8>,
}

impl Claims {
    /// No claims on `count` pages.
    #[must_use]
    pub fn new(count: u32) -> Claims {
        let n = idx(count);
        Claims { owner: (0..n).map(|_| AtomicU32::new(0)).collect(), role: (0..n).map(|_| AtomicU8::new(0)).collect() }
    }

    /// Claims a page.
    ///
    /// # Errors
    /// The owner that has it already. A page outside the file is nobody's and can be claimed in vain.
    #[inline]
    pub fn claim(&self, page: PageNo, owner: Owner, role: Role) -> Result<(), Owner> {
        let Some(place) = self.owner.get(page.index()) else { return Ok(()) };
        match place.compare_exchange(0, owner.0.saturating_add(1), Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => {
                if let Some(place) = self.role.get(page.index()) {
                    place.store(role.number(), Ordering::Relaxed);
                }
                Ok(())
            }
            Err(has) => Err(Owner(has.saturating_sub(1))),
        }
    }

    /// Who has a page.
    #[must_use]
    #[inline]
    pub fn owner(&self, page: PageNo) -> Option<Owner> {
        self.owner.get(page.index()).and_then(|n| n.load(Ordering::Relaxed).checked_sub(1)).map(Owner)
    }

    /// What a page is.
    #[must_use]
    #[inline]
    pub fn role(&self, page: PageNo) -> Role {
        let n = self.role.get(page.index()).map_or(0, |r| r.load(Ordering::Relaxed));
        Role::ALL.get(usize::from(n)).copied().unwrap_or(Role::Orphan)
    }

    /// Gives a page back.
    pub fn release(&self, page: PageNo) {
        if let Some(place) = self.owner.get(page.index()) {
            place.store(0, Ordering::Relaxed);
        }
        if let Some(place) = self.role.get(page.index()) {
            place.store(0, Ordering::Relaxed);
        }
    }

    /// Gives back every page that has this role.
    pub fn release_all(&self, role: Role) {
        let n = role.number();
        for (owner, has) in self.owner.iter().zip(&self.role) {
            if has.load(Ordering::Relaxed) == n {
                owner.store(0, Ordering::Relaxed);
                has.store(0, Ordering::Relaxed);
            }
        }
    }

    /// How many pages there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.owner.len()
    }
}
