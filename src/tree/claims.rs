//! Which tree has which page, and as what.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};

use crate::finding::Site;
use crate::format::PageKind;
use crate::ids::{ObjectId, PageNo, idx};

/// Who owns a page: the place of a tree in the list of trees, from 0. The freelist and the pages of the file format itself
/// have owners of their own behind the trees.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Owner(pub u32);

impl Owner {
    /// The file itself: pointer-map pages and the lock-byte page.
    pub const FILE: Owner = Owner(u32::MAX - 2);
    /// The freelist.
    pub const FREELIST: Owner = Owner(u32::MAX - 1);

    /// The owners that trees can have, in the order of their list.
    pub fn of_trees() -> impl Iterator<Item = Owner> {
        (0..Owner::FILE.0).map(Owner)
    }
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

    /// The role with this word; "free" is short for "freelist-leaf".
    #[must_use]
    pub fn from_word(word: &str) -> Option<Role> {
        if word == "free" { Some(Role::FreelistLeaf) } else { Role::ALL.into_iter().find(|r| r.word() == word) }
    }

    /// Whether it is a page of a b-tree.
    #[must_use]
    pub const fn is_tree(self) -> bool {
        matches!(self, Role::TableInterior | Role::TableLeaf | Role::IndexInterior | Role::IndexLeaf)
    }

    fn number(self) -> u8 {
        Role::ALL.iter().position(|r| *r == self).and_then(|n| u8::try_from(n).ok()).unwrap_or(0)
    }
}

/// Whom a ruling gives a page to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Given {
    /// Nobody.
    Nobody,
    /// The object with this root page.
    Root(PageNo),
    /// The object with this id: it has no root page.
    Object(ObjectId),
}

/// What somebody who knows better says a page is. It counts before everything that the evidence says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ruling {
    /// The role: a page of a tree, or `Orphan`, `FreelistLeaf`, `Unreadable`.
    pub role: Role,
    /// For a page of a tree: whose.
    pub given: Given,
}

/// Rulings by page.
pub type Rulings = BTreeMap<PageNo, Ruling>;

impl Ruling {
    /// Whether it lets the tree with this root, or of the object of this site, have the page.
    #[must_use]
    pub fn lets(&self, root: PageNo, site: Site) -> bool {
        self.role.is_tree()
            && match self.given {
                Given::Nobody => false,
                Given::Root(page) => page == root,
                Given::Object(id) => site.object == Some(id),
            }
    }
}

/// Who has each page and as what. Shared by all workers: a page is given to whoever claims it first, and a worker that
/// comes second is told who has it. Where that happens the result depends on the order, so the survey then claims anew in
/// key order on one thread.
#[derive(Debug)]
pub struct Claims {
    owner: Vec<AtomicU32>,
    role: Vec<AtomicU8>,
    rulings: Rulings,
}

impl Claims {
    /// No claims on `count` pages.
    #[must_use]
    pub fn new(count: u32) -> Claims {
        Claims::with_rulings(count, Rulings::new())
    }

    /// No claims but what the rulings say.
    #[must_use]
    pub fn with_rulings(count: u32, rulings: Rulings) -> Claims {
        let n = idx(count);
        let claims =
            Claims { owner: (0..n).map(|_| AtomicU32::new(0)).collect(), role: (0..n).map(|_| AtomicU8::new(0)).collect(), rulings };
        claims.settle();
        claims
    }

    /// Enters the pages that no tree may have.
    fn settle(&self) {
        for (page, ruling) in self.rulings.iter().filter(|(_, r)| !r.role.is_tree()) {
            let owner = if ruling.role == Role::FreelistLeaf { Owner::FREELIST.0.saturating_add(1) } else { 0 };
            if let (Some(has), Some(role)) = (self.owner.get(page.index()), self.role.get(page.index())) {
                has.store(owner, Ordering::Relaxed);
                role.store(ruling.role.number(), Ordering::Relaxed);
            }
        }
    }

    /// What was ruled.
    #[must_use]
    pub fn rulings(&self) -> &Rulings {
        &self.rulings
    }

    /// What was ruled about a page.
    #[must_use]
    #[inline]
    pub fn ruling(&self, page: PageNo) -> Option<Ruling> {
        if self.rulings.is_empty() { None } else { self.rulings.get(&page).copied() }
    }

    /// Claims a page.
    ///
    /// # Errors
    /// The owner that has it already, [`Owner::FILE`] where a ruling gives it another role. A page outside the file is
    /// nobody's and can be claimed in vain.
    #[inline]
    pub fn claim(&self, page: PageNo, owner: Owner, role: Role) -> Result<(), Owner> {
        match self.ruling(page) {
            Some(ruling) if ruling.role != role => return Err(Owner::FILE),
            Some(ruling) if !ruling.role.is_tree() => return Ok(()),
            _ => {}
        }
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
        if self.ruling(page).is_some_and(|r| !r.role.is_tree()) {
            return;
        }
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
        self.settle();
    }

    /// Gives back every page that one of these owners has in this role.
    pub fn release_of(&self, role: Role, owners: &BTreeSet<Owner>) {
        for no in self.held(role, owners) {
            self.release(no);
        }
    }

    /// Claims every page that one of these owners has in this role in other claims on the same file; `false` when somebody
    /// else has one here.
    #[must_use]
    pub fn take_over(&self, other: &Claims, role: Role, owners: &BTreeSet<Owner>) -> bool {
        other.held(role, owners).all(|no| other.owner(no).is_some_and(|owner| self.claim(no, owner, role).is_ok()))
    }

    fn held(&self, role: Role, owners: &BTreeSet<Owner>) -> impl Iterator<Item = PageNo> {
        let pages = std::iter::successors(Some(PageNo::ONE), |no| no.next()).take(self.count());
        pages.filter(move |no| self.role(*no) == role && self.owner(*no).is_some_and(|owner| owners.contains(&owner)))
    }

    /// How many pages there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.owner.len()
    }
}
