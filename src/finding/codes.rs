//! The one problem table: every damage the product can name, with how far it spreads and what is done about it.
//!
//! Ids are never used twice. X002, X003 and X007 are retired: T001, T009 and the accounting codes of pages say the same. `rootpage explain CODE` prints an entry; `docs/codes.md` lists all; a test keeps both equal.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// How far a problem spreads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Reading goes on as if all were right.
    Note,
    /// This item is lost; its neighbours are not.
    SkipItem,
    /// Nothing is read behind this point of the structure.
    StopHere,
}

/// What a finding counts for in the verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weight {
    /// Nothing: a note about data, a limit of the tool, or what an ordinary log or journal holds.
    Note,
    /// Bookkeeping: no data and no index is touched. Also a file that SQLite should not find beside a database that is whole.
    Housekeeping,
    /// What its object is: a table, an index, a search index. Without an object it counts for the file as a whole, as data.
    Object,
    /// Data, whatever its object is.
    Data,
    /// What the missing shadow tables of its virtual table held.
    Shadow,
}

/// What a finding is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// The database file, its trees and its rows.
    Database,
    /// The declaration of an object alone, which was found elsewhere or put together: nothing is lost by it.
    Declaration,
    /// The content of a full-text index.
    SearchIndex,
    /// A log or a journal beside the database.
    Sidecar,
}

/// What a finding says of the page that it names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bytes {
    /// Its bytes are not what was written.
    Here,
    /// It is the place of something that is wrong elsewhere: an index entry bears witness of a row that another page lost.
    Elsewhere,
}

/// What a finding does to a row, or to the state that rows are read from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowEffect {
    /// Nothing.
    Nothing,
    /// Its cell or record was overwritten.
    Unreadable,
    /// It breaks the declaration of its table and is set aside, unless violations are kept.
    Violation,
    /// It breaks the declaration of its table in a way that no copy may keep.
    Breaker,
    /// It is set aside: deleted, out of place, or beaten by another row.
    Aside,
    /// Committed work stays out of the view, or the view is in the middle of a transaction, also where no row can be counted.
    InDoubt,
}

impl RowEffect {
    /// Whether a row is set aside because it breaks the declaration of its table.
    #[must_use]
    pub const fn breaks_declaration(self) -> bool {
        matches!(self, RowEffect::Violation | RowEffect::Breaker)
    }
}

/// An entry of the problem table.
#[derive(Debug, Clone, Copy)]
pub struct Problem {
    /// Stable id, a letter for the area and three digits.
    pub id: &'static str,
    /// Kebab-case name.
    pub name: &'static str,
    /// How far it spreads.
    pub effect: Effect,
    /// What it counts for.
    pub weight: Weight,
    /// What it is about.
    pub subject: Subject,
    /// What it says of the page that it names.
    pub bytes: Bytes,
    /// What it does to a row.
    pub row: RowEffect,
    /// What was found; `{got}` and `{want}` stand for the values of a finding, `{rowid}` for the value found as a signed number.
    pub sentence: &'static str,
    /// What the tool does about it.
    pub action: &'static str,
    /// What it means, for `explain`.
    pub meaning: &'static str,
}

macro_rules! problems {
    ($( $(#[doc = $doc:literal])+ $variant:ident $id:literal $name:literal $effect:ident $weight:ident $subject:ident $bytes:ident $row:ident $sentence:literal => $action:literal; )+) => {
        /// Every problem that can be found in evidence.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Code { $( $(#[doc = $doc])+ $variant, )+ }

        impl Code {
            /// All codes in the order of their ids.
            pub const ALL: &'static [Code] = &[ $( Code::$variant, )+ ];

            /// The entry of the problem table.
            #[must_use]
            pub const fn problem(self) -> Problem {
                match self { $( Code::$variant => Problem {
                    id: $id, name: $name, effect: Effect::$effect, weight: Weight::$weight, subject: Subject::$subject,
                    bytes: Bytes::$bytes, row: RowEffect::$row, sentence: $sentence, action: $action,
                    meaning: concat!($($doc, "\n"),+),
                }, )+ }
            }
        }
    };
}

/// As its id.
impl Serialize for Code {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        out.serialize_str(self.problem().id)
    }
}

impl<'de> Deserialize<'de> for Code {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Code, D::Error> {
        let id = String::deserialize(from)?;
        Code::find(&id).ok_or_else(|| serde::de::Error::custom(format_args!("no problem has the id {id:?}")))
    }
}

impl std::fmt::Display for Code {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.problem().id)
    }
}

impl Code {
    /// The code with this id (`C001`, any case) or name (`cell-outside`).
    #[must_use]
    pub fn find(text: &str) -> Option<Code> {
        Code::ALL.iter().copied().find(|c| c.problem().id.eq_ignore_ascii_case(text) || c.problem().name == text)
    }
}

problems! {
    #[doc = "The first 100 bytes of a database hold its header (file format document, section 1.3). Fewer bytes are left here."]
    HeaderShort "H001" "header-short" StopHere Object Database Here Nothing
        "the file has {got} bytes, a database header has {want}" =>
        "nothing is read from the header; the rest of the file is searched for pages";
    #[doc = "Every database begins with \"SQLite format 3\" and a NUL. SQLite refuses a file without it, whatever else is whole."]
    MagicBad "H002" "magic-bad" Note Object Database Here Nothing
        "the first 16 bytes are not the magic string of SQLite 3" =>
        "the header fields are checked one by one against the rest of the file";
    #[doc = "The page size at offset 16 is a power of two from 512 to 32768, or 1 for 65536."]
    PageSizeBad "H003" "page-size-bad" Note Object Database Here Nothing
        "the header gives page size {got}" =>
        "the page size that fits the page headers of the file is taken";
    #[doc = "The usable size is the page size less the reserved bytes of each page (offset 20); the format needs at least 480."]
    UsableSizeTooSmall "H004" "usable-size-too-small" Note Object Database Here Nothing
        "the usable size is {got} bytes, at least {want} are needed" =>
        "reserved bytes are taken as the page headers show them";
    #[doc = "Offsets 21 to 23 must hold 64, 32 and 32."]
    PayloadFractionsBad "H005" "payload-fractions-bad" Note Housekeeping Database Here Nothing
        "the payload fractions are {got}, the format fixes {want}" =>
        "they are ignored, and written right in the copy";
    #[doc = "The count at offset 28 is valid only when offset 92 equals the change counter at offset 24. Tools that cut or append, or a lost write of page 1, make it stale."]
    PageCountStale "H006" "page-count-stale" Note Housekeeping Database Here Nothing
        "the header counts {got} pages, the file has {want}" =>
        "the file's own size is taken where pages beyond the count are in use";
    #[doc = "A database file is a whole number of pages long."]
    FileNotWholePages "H007" "file-not-whole-pages" Note Object Database Here Nothing
        "{got} bytes follow the last whole page of {want} bytes" =>
        "they are read as a page that is cut short";
    #[doc = "Offset 56 holds 1 (UTF-8), 2 (UTF-16LE) or 3 (UTF-16BE)."]
    EncodingBad "H008" "encoding-bad" Note Object Database Here Nothing
        "the header gives text encoding {got}" =>
        "the encoding that the text of the records shows is taken";
    #[doc = "The schema format at offset 44 says which record features are in use: DESC in a key counts from format 4 on. No format but 1 to 4 is known, and the order of the entries shows whether DESC counts."]
    SchemaFormatBad "H009" "schema-format-bad" Note Housekeeping Database Here Nothing
        "the header gives schema format {got}, the schema is read as format {want}" =>
        "the copy has the format that the entries prove, else format 4";
    #[doc = "Offsets 18 and 19 hold 1 for rollback journal, 2 for WAL."]
    FileVersionUnknown "H010" "file-version-unknown" Note Housekeeping Database Here Nothing
        "a file format version is {got}, known are 1 and 2" =>
        "the file is read all the same";
    #[doc = "Bytes 18 and 19 of the header are 2 while the database is in WAL mode. Committed rows may then live only in the -wal file. Look for it, also as a deleted file that a process still holds open."]
    VersionsSayWal "H011" "versions-say-wal" Note Note Database Here Nothing
        "the header says WAL mode, no -wal file was given or found" =>
        "the main file alone is read; newer commits may have been in the lost WAL";
    #[doc = "The page size in the header is one that the format allows, and the pages of the file are of another."]
    PageSizeDiffers "H012" "page-size-differs" Note Object Database Here Nothing
        "page size {got} is named, the pages fit {want}" =>
        "the page size that the pages fit is taken";
    #[doc = "Offset 56 names an encoding in which no schema text of the file is written."]
    EncodingDiffers "H013" "encoding-differs" Note Object Database Here Nothing
        "the header gives text encoding {got}, the schema is written in {want}" =>
        "the encoding of the schema text is taken";
    #[doc = "Cells end where the usable bytes of a page end; that shows how many bytes are reserved, whatever offset 20 says."]
    ReservedDiffers "H014" "reserved-differs" Note Object Database Here Nothing
        "the header reserves {got} bytes of each page, the pages show {want}" =>
        "the number that the pages show is taken";
    #[doc = "Another page, or foreign bytes, were written over the first page. The schema that lay there may survive in a sidecar, in old pages, or not at all."]
    PageOneReplaced "H015" "page-one-replaced" Note Object Database Here Nothing
        "what stands where page 1 should be begins with byte {got} and is no page 1" =>
        "it is read as what it is; the schema is looked for elsewhere";
    #[doc = "A misdirected write: page 1 stands at another place of the file, and something else at its own."]
    PageOneElsewhere "H016" "page-one-elsewhere" Note Object Database Here Nothing
        "page 1 stands where page {got} should be" =>
        "it is read from there";
    #[doc = "Whole pages are missing or inserted at the front: every page number is off by the same amount."]
    PagesShifted "H017" "pages-shifted" Note Object Database Here Nothing
        "every page stands at another place than its number says, off by {got}" =>
        "every pointer is followed with that displacement";
    #[doc = "Bytes were lost or inserted near the front, as by a text-mode transfer: no page stands on a page boundary."]
    BytesShifted "H018" "bytes-shifted" Note Object Database Here Nothing
        "the pages are displaced by {got} bytes" =>
        "they are read from where they are";
    #[doc = "Two databases in one file. --offset reads the second."]
    SecondDatabase "H019" "second-database" Note Object Database Here Nothing
        "another database begins at byte {got}" =>
        "it is not part of this one; --offset reads it";
    #[doc = "Header bytes 52 to 55 hold the largest root page of an auto-vacuum database and zero in any other. Pages where a pointer map would be are pages of trees, or the other way round."]
    AutoVacuumLies "H020" "auto-vacuum-lies" Note Housekeeping Database Here Nothing
        "the header names {got} as the largest root of an auto-vacuum file, its pages say {want}" =>
        "the pages are believed, in the copy too";
    #[doc = "Whole pages are missing or were inserted within the file: the numbers of all pages behind are off. The file has as many pages more or fewer than its header says, and child pointers hit their pages only with that displacement."]
    PagesMoved "H021" "pages-moved" Note Object Database Here Nothing
        "from page {got} on all pages are displaced by {want} pages" =>
        "every pointer is followed with that displacement; pages that are missing are holes";
    #[doc = "A program that took the file for text put a CR before every LF. Every LF of the file has one, and without them the file is as long as its header says."]
    TextModeTransfer "H022" "text-mode-transfer" Note Object Database Here Nothing
        "a transfer in text mode put a CR before each of {got} LF bytes" =>
        "each of them is taken out again, which gives the file back exactly";
    #[doc = "A WAL begins with 0x377f0682 or 0x377f0683, version 3007000 and a page size (file format document, section 4.1). SQLite silently ignores a log whose header is none."]
    WalHeaderBad "W001" "wal-header-bad" StopHere Housekeeping Sidecar Here Nothing
        "the WAL has no header that SQLite accepts (first word {got}, {want} would be one)" =>
        "SQLite would ignore the log, so the default view does; its frames are read as history";
    #[doc = "The header of a WAL carries a checksum over its first 24 bytes."]
    WalHeaderChecksum "W002" "wal-header-checksum" StopHere Housekeeping Sidecar Here Nothing
        "the checksum of the WAL header is {got}, its bytes give {want}" =>
        "SQLite would ignore the log, so the default view does; its frames are read as history";
    #[doc = "The log belongs to a database of another page size."]
    WalPageSizeDiffers "W003" "wal-page-size-differs" Note Housekeeping Sidecar Here Nothing
        "the WAL has pages of {got} bytes, the main file of {want}" =>
        "the log is taken for another database's unless the main file's pages fit its size";
    #[doc = "Each frame carries the running checksum of all frames before it. SQLite reads the log up to the last commit before the first frame that breaks the chain."]
    FrameChecksum "W004" "frame-checksum" StopHere Note Sidecar Here Nothing
        "the checksum chain breaks at frame {got}; {want} frames before it hold" =>
        "the default view ends at the last commit before it; later frames are history";
    #[doc = "After a checkpoint the log is written from its start again under new salts; what was there before remains behind the new frames."]
    FrameOlder "W005" "frame-of-older-generation" Note Note Sidecar Here Nothing
        "{got} frames from frame {want} on carry the salts of an earlier generation of the log" =>
        "they are history, not part of the default view";
    #[doc = "A frame names page 0, or one that the database of its commit does not have."]
    FramePageOutside "W006" "frame-page-outside" SkipItem Object Sidecar Here InDoubt
        "a frame holds page {got}, the database has {want}" =>
        "the frame is not part of the view";
    #[doc = "A transaction that was cut off, rolled back, or was still running when the copy was taken."]
    FramesUncommitted "W007" "frames-after-last-commit" Note Note Sidecar Here Nothing
        "{got} frames follow the last commit at frame {want}" =>
        "they are kept as uncommitted versions, not part of the default view";
    #[doc = "The log ends within a frame."]
    FrameCut "W008" "frame-cut" StopHere Note Sidecar Here Nothing
        "the last frame has {got} of {want} bytes" =>
        "it is not part of the view";
    #[doc = "The log is positively not this database's: its pages contradict those of the main file."]
    WalForeign "W009" "wal-foreign" Note Housekeeping Sidecar Here Nothing
        "the WAL belongs to another database" =>
        "it is not blended with the main file; SQLite would";
    #[doc = "Some things speak against the log being this database's, none proves it."]
    WalUndecided "W010" "wal-fit-undecided" Note Object Sidecar Here Nothing
        "it is not certain that the WAL belongs to this file" =>
        "it is read as SQLite reads it; both views are counted";
    #[doc = "A log without its main file, or beside an empty or overwritten one. SQLite would delete it."]
    WalWithoutMain "W011" "wal-without-main" Note Object Sidecar Here Nothing
        "the WAL holds {got} pages, the main file none of them" =>
        "the pages of the log are read; SQLite would delete it";
    #[doc = "Bytes behind the frames that are no frames."]
    WalJunk "W012" "wal-junk" Note Note Sidecar Here Nothing
        "{got} frames behind the last commit are no frames of any generation" =>
        "they are ignored";
    #[doc = "A commit says how many pages the database has."]
    CommitPagesMissing "W013" "commit-pages-missing" Note Object Sidecar Here Nothing
        "the last commit gives the database {got} pages, files hold {want}" =>
        "pages above are missing";
    #[doc = "Whole transactions stand in the log behind a break of the checksum chain, or under a header that SQLite does not accept: it ends before them, or ignores the log, and shows none of them. They were committed."]
    CommitsHidden "W014" "commits-hidden" Note Object Sidecar Here InDoubt
        "{got} commits in {want} frames stand where SQLite does not read the log" =>
        "the default view is SQLite's; the rows that only these frames hold go to the salvage database";
    #[doc = "A rollback journal begins with 0xd9d505f920a163d7. Zeroed, the transaction was finished and the file kept (PERSIST)."]
    JournalHeaderBad "J001" "journal-header-bad" StopHere Object Sidecar Here InDoubt
        "the journal has no header that SQLite accepts (first byte {got})" =>
        "nothing is rolled back, as SQLite would not; page images in it are history";
    #[doc = "Each record carries a checksum over its page number's nonce and one byte in two hundred."]
    JournalChecksum "J002" "journal-record-checksum" StopHere Object Sidecar Here InDoubt
        "record {got} has a wrong checksum; {want} records before it hold" =>
        "the rollback ends there, as in SQLite";
    #[doc = "The header counts the records that follow."]
    JournalCountDiffers "J003" "journal-count-differs" Note Object Sidecar Here InDoubt
        "the header counts {got} records, the file holds {want}" =>
        "the smaller number is read";
    #[doc = "The journal ends within a header or record."]
    JournalCut "J004" "journal-cut" StopHere Object Sidecar Here InDoubt
        "the journal ends after {got} of {want} bytes of a record" =>
        "the rollback ends there";
    #[doc = "A commit over several attached databases is decided by a super-journal. Where it is gone, the transaction counts as committed; a copied incident never has it beside it."]
    SuperJournalAbsent "J005" "super-journal-absent" Note Object Sidecar Here Nothing
        "the journal names a super-journal" =>
        "it cannot be decided whether the transaction was committed: the state without a rollback is shown, as SQLite would; --super-journal present shows the other";
    #[doc = "The journal is positively not this database's."]
    JournalForeign "J006" "journal-foreign" Note Housekeeping Sidecar Here Nothing
        "the journal belongs to another database" =>
        "it is not rolled back; SQLite would";
    #[doc = "A transaction was interrupted: the journal holds the pages as they were before it."]
    JournalHot "J007" "journal-hot" Note Note Sidecar Here Nothing
        "a transaction was interrupted; {got} pages are rolled back to {want} pages" =>
        "the state before it is shown, as SQLite would";
    #[doc = "The main file is empty and a journal lies beside it. SQLite would delete the journal."]
    JournalWithoutMain "J008" "journal-without-main" Note Object Sidecar Here InDoubt
        "the journal holds {got} pages, the main file none" =>
        "its page images are read as history";
    #[doc = "Some things speak against the journal being this database's, none proves it."]
    JournalUndecided "J009" "journal-fit-undecided" Note Object Sidecar Here Nothing
        "it is not certain that the journal belongs to this file" =>
        "it is read as SQLite reads it; both views are counted";
    #[doc = "A b-tree page begins with 2, 5, 10 or 13 (section 1.6)."]
    PageKindBad "P001" "page-kind-bad" StopHere Object Database Here Nothing
        "page type byte is {got}" =>
        "its pointers are not followed; rows are read out of it only where cells of its table show by their sizes";
    #[doc = "The cell count at offset 3 of the page header is larger than the pointer array can hold."]
    CellCountTooBig "P002" "cell-count-too-big" Note Object Database Here Nothing
        "{got} cells are declared, {want} fit the page" =>
        "the cell pointers that fit are tried one by one";
    #[doc = "The offset at 5 of the page header lies before the end of the pointer array or behind the usable size."]
    ContentStartBad "P003" "content-start-bad" Note Object Database Here Nothing
        "cell content starts at {got}, outside {want}" =>
        "the start is taken from the cells themselves";
    #[doc = "Freeblocks are chained free ranges between cells."]
    FreeblockOutside "P004" "freeblock-outside" Note Object Database Here Nothing
        "a freeblock starts at {got}, outside the page of {want} bytes" =>
        "the freeblock chain ends there";
    #[doc = "Freeblocks are chained in ascending order and do not touch."]
    FreeblockOrder "P005" "freeblock-order" Note Object Database Here Nothing
        "a freeblock at {got} follows one that ends at {want}" =>
        "the freeblock chain ends there";
    #[doc = "Free ranges of up to three bytes are counted at offset 7 of the page header."]
    FragmentsWrong "P006" "fragments-wrong" Note Housekeeping Database Here Nothing
        "{got} fragmented free bytes are counted, the page has {want}" =>
        "nothing is lost by it; the copy counts right";
    #[doc = "A freeblock or two cells share bytes."]
    CellsOverlapFree "P007" "free-space-overlap" Note Object Database Here Nothing
        "bytes at {got} are both free and in use by a cell that ends at {want}" =>
        "the cell is kept when it decodes";
    #[doc = "The file ends within this page, or a read error left it short."]
    PageCut "P008" "page-cut" Note Object Database Here Nothing
        "the page has {got} of {want} bytes" =>
        "what is there is read";
    #[doc = "A page in use is never all zero: it was never written, or was wiped."]
    PageAllZero "P009" "page-all-zero" StopHere Object Database Here Nothing
        "all {got} bytes of the page are zero" =>
        "nothing is read through it";
    #[doc = "The operating system reported an I/O error for this range."]
    PageUnreadable "P010" "page-unreadable" Note Object Database Here Nothing
        "{got} bytes of the page could not be read from the medium" =>
        "the bytes that could be read are used, the others count as zero";
    #[doc = "The count was cleared while pointers and cells still stand and account for every byte of the content area."]
    CellCountTooSmall "P011" "cell-count-too-small" Note Object Database Here Nothing
        "{got} cells are declared, the pointers lead to {want}" =>
        "the cells that account for the bytes of the page are read";
    #[doc = "A cell pointer leads into the page header, the pointer array, or behind the usable size."]
    CellOutside "C001" "cell-outside" SkipItem Object Database Here Unreadable
        "a cell starts at {got}, outside the cell content area that ends at {want}" =>
        "the pointer is not followed; a whole cell that no pointer names is found by the accounting of the page's bytes";
    #[doc = "Two cells share bytes; at most one of them is what was written."]
    CellOverlap "C002" "cell-overlap" Note Object Database Here Nothing
        "a cell starts at {got}, inside one that ends at {want}" =>
        "both are tried";
    #[doc = "A variable-length integer takes one to nine bytes."]
    VarintCut "C003" "varint-cut" SkipItem Object Database Here Unreadable
        "a varint at byte {got} runs over the end at {want}" =>
        "this cell or record is dropped";
    #[doc = "The payload length at the start of a cell cannot be larger than all pages together."]
    PayloadSizeAbsurd "C004" "payload-size-absurd" SkipItem Object Database Here Unreadable
        "a payload of {got} bytes is declared, the file holds {want}" =>
        "this cell is dropped";
    #[doc = "An interior cell or the right-most pointer names a page that is not there."]
    ChildOutside "C005" "child-outside" SkipItem Object Database Here Nothing
        "a child pointer leads to page {got}, the file has {want}" =>
        "the child is missing: a hole through which orphaned leaves may come back";
    #[doc = "The chain of overflow pages leaves the file."]
    OverflowOutside "C006" "overflow-outside" SkipItem Object Database Here Nothing
        "an overflow pointer leads to page {got}, the file has {want}" =>
        "the row is partial; it is set aside";
    #[doc = "An overflow page appears twice in one chain."]
    OverflowLoop "C007" "overflow-loop" SkipItem Object Database Here Nothing
        "an overflow chain comes back to page {got} after {want} pages" =>
        "the row is partial; it is set aside";
    #[doc = "The last page of the chain has no next page while bytes are missing."]
    OverflowEndsEarly "C008" "overflow-ends-early" SkipItem Object Database Here Nothing
        "an overflow chain ends {got} bytes before the {want} that are declared" =>
        "the row is partial; it is set aside";
    #[doc = "Two chains, or a chain and a tree, claim the same page."]
    OverflowShared "C009" "overflow-shared" SkipItem Object Database Elsewhere Nothing
        "overflow page {got} belongs to another owner already" =>
        "the row that fits its declared record keeps it; the other is set aside";
    #[doc = "The chain goes on although all declared bytes have been read."]
    OverflowTooLong "C010" "overflow-too-long" Note Housekeeping Database Here Nothing
        "the last overflow page at {got} names a next page {want}" =>
        "the pages behind it are not part of the row";
    #[doc = "SQLite writes 0 where a chain ends. Another number there, over bytes that are no text in a column that holds text, shows that something else was written over the page."]
    OverflowOverwritten "C011" "overflow-overwritten" SkipItem Object Database Here Nothing
        "the last overflow page {got} names a next page {want}, and what it holds of a text is no text" =>
        "the row is set aside";
    #[doc = "Disks lose data by sectors of 512 bytes. A text with NULs from one edge of a sector to the next was cut there; text of an application holds none."]
    OverflowSectorZero "C012" "overflow-sector-zero" SkipItem Object Database Here Nothing
        "the {want} bytes of a text from {got} on are NULs, which end where a sector of an overflow page does" =>
        "the row is set aside";
    #[doc = "Two pointers lead to one page: a loop, or a write that hit the wrong page."]
    PageSeenTwice "T001" "page-seen-twice" SkipItem Object Database Here Nothing
        "page {got} is reached a second time" =>
        "the second reference is not followed";
    #[doc = "All leaves of a b-tree have the same depth."]
    DepthDiffers "T002" "depth-differs" Note Object Database Elsewhere Nothing
        "a leaf lies at depth {got}, others of the tree at {want}" =>
        "the leaf is read";
    #[doc = "Keys ascend within a page and from leaf to leaf."]
    KeyOrder "T003" "key-order" Note Object Database Here Nothing
        "a key at cell {got} is not above its neighbour" =>
        "the rows are sorted anew in the copy";
    #[doc = "An interior key is the largest key of the subtree on its left."]
    KeyOutsideParent "T004" "key-outside-parent" Note Object Database Here Nothing
        "a key lies outside the bounds that its parents set" =>
        "bounds are hints: the row is kept";
    #[doc = "No b-tree that fits a file is this deep: the pointers go astray."]
    DepthOverLimit "T005" "depth-over-limit" StopHere Object Database Here Nothing
        "the tree is deeper than {want} levels" =>
        "the walk does not go deeper";
    #[doc = "A table tree has pages of type 5 and 13, an index tree of 2 and 10."]
    KindMixed "T006" "kind-mixed" SkipItem Object Database Here Nothing
        "page type {got} stands in a tree of type {want}" =>
        "the page is not read as part of this tree";
    #[doc = "sqlite_schema.rootpage leads out of the file."]
    RootOutside "T007" "root-outside" StopHere Object Database Here Nothing
        "the root page is {got}, the file has {want} pages" =>
        "the object's rows are looked for among orphaned pages";
    #[doc = "A balanced tree has at least one cell on each interior page but a root."]
    InteriorEmpty "T008" "interior-empty" Note Housekeeping Database Here Nothing
        "an interior page has no cell, only a right-most child" =>
        "the child is followed";
    #[doc = "The rowid is the key of its table and cannot repeat."]
    RowidTwice "T009" "rowid-twice" SkipItem Object Database Elsewhere Aside
        "rowid {rowid} stands in the tree more than once" =>
        "the copy that an index or its neighbours confirm stays live, the others are set aside";
    #[doc = "Zero means \"no page\" and is never a child."]
    ChildZero "T010" "child-zero" SkipItem Object Database Here Nothing
        "a child pointer is zero" =>
        "the child is missing: a hole through which orphaned leaves may come back";
    #[doc = "SQLite frees a leaf that becomes empty: an empty one was cleared from outside."]
    LeafEmpty "T011" "leaf-empty" Note Object Database Here Nothing
        "a leaf in a tree of more than one page has no cells" =>
        "nothing is read from it";
    #[doc = "A whole cell of the table lies among bytes that no pointer, freeblock or fragment explains: its pointer was lost, or aims elsewhere."]
    CellUnnamed "T012" "cell-unnamed" Note Object Database Here Nothing
        "no pointer names the cell at byte {got}" =>
        "the cell is found by the accounting of the page's bytes and read like the others";
    #[doc = "The header and the cell pointers of a leaf are destroyed, its cells follow one another without a gap up to the end of the page."]
    LeafCarved "T013" "leaf-carved" Note Object Database Here Nothing
        "the header and the pointers of the leaf are gone; {got} cells are found by their sizes" =>
        "they are read in key order";
    #[doc = "The rowid of a cell was changed. An index pairs the values of the row with the true one, and no other row has it."]
    RowidRestored "T014" "rowid-restored" Note Object Database Here Nothing
        "an index names another rowid for a row than its cell" =>
        "the row is written under the rowid that the index names";
    #[doc = "Two pages of two trees, or of two places of one, have the same bytes, and only one of them fits where it stands: the other was overwritten by a misdirected write."]
    PageCopied "T015" "page-copied" SkipItem Object Database Here Nothing
        "the page is a copy of page {got}, which belongs elsewhere" =>
        "nothing is read from it; what it held is looked for among orphaned pages and indexes";
    #[doc = "All cells of a page are of another kind than the first byte of its header says."]
    PageKindLies "T016" "page-kind-lies" Note Object Database Here Nothing
        "the page says type {got}, its cells are those of type {want}" =>
        "it is read by its cells";
    #[doc = "The freelist is a chain of trunk pages that name leaf pages (section 1.5)."]
    TrunkOutside "F001" "trunk-outside" StopHere Housekeeping Database Here Nothing
        "a freelist trunk pointer leads to page {got}, the file has {want}" =>
        "the freelist ends there";
    #[doc = "A trunk appears twice in the chain."]
    TrunkLoop "F002" "trunk-loop" StopHere Housekeeping Database Here Nothing
        "the freelist comes back to trunk page {got}" =>
        "the freelist ends there";
    #[doc = "A trunk page has room for usable size / 4 - 2 page numbers."]
    TrunkCountTooBig "F003" "trunk-count-too-big" SkipItem Housekeeping Database Here Nothing
        "a freelist trunk counts {got} leaves, {want} fit" =>
        "the entries of this trunk are not used";
    #[doc = "The count at offset 36 of the header differs from what the chain holds."]
    FreelistCountWrong "F004" "freelist-count-wrong" Note Housekeeping Database Elsewhere Nothing
        "the header counts {got} free pages, the chain has {want}" =>
        "the copy has no freelist";
    #[doc = "The freelist names a page that a b-tree reaches."]
    FreePageInUse "F005" "free-page-in-use" Note Housekeeping Database Elsewhere Nothing
        "free page {got} is in use by a tree" =>
        "the live tree keeps the page";
    #[doc = "In auto-vacuum files each page's parent is noted on pointer-map pages (section 1.8)."]
    PtrmapWrong "F006" "ptrmap-wrong" Note Housekeeping Database Here Nothing
        "the pointer map says type and parent {got}, the trees say {want}" =>
        "the trees are followed; the copy has a new pointer map";
    #[doc = "The page at 1 GiB is never used for content."]
    LockBytePageUsed "F007" "lock-byte-page-used" SkipItem Object Database Here Nothing
        "a pointer leads to the lock-byte page {got}" =>
        "nothing is read from it";
    #[doc = "A page number in a trunk page leads out of the file."]
    FreeLeafOutside "F008" "free-leaf-outside" SkipItem Housekeeping Database Here Nothing
        "a freelist entry names page {got}, the file has {want}" =>
        "the entry is not used";
    #[doc = "The header or an earlier trunk no longer leads to this trunk. All pages that it names belong to no tree, as free pages do."]
    TrunkForgotten "F009" "trunk-forgotten" Note Housekeeping Database Elsewhere Nothing
        "a freelist trunk that no chain reaches names {got} pages, and no tree has one of them" =>
        "these pages were free: what they hold goes to salvage, not into a live table";
    #[doc = "Without it no table has a name."]
    SchemaTreeLost "S001" "schema-tree-lost" StopHere Object Database Here Nothing
        "the tree of sqlite_schema at page 1 cannot be read" =>
        "the schema is searched elsewhere in the file";
    #[doc = "CREATE text in sqlite_schema is damaged or foreign."]
    SqlNotParsed "S002" "sql-not-parsed" SkipItem Object Database Here Nothing
        "the SQL text of an object is not SQL that SQLite accepts" =>
        "what can be read from it is used; the text is kept in the report";
    #[doc = "type, name, tbl_name, rootpage and sql."]
    SchemaRowBad "S003" "schema-row-bad" SkipItem Object Database Here Nothing
        "a row of sqlite_schema does not have its five columns" =>
        "the row is set aside";
    #[doc = "The rootpage column is empty, zero, outside the file, or belongs to another object."]
    RootPageBad "S004" "root-page-bad" SkipItem Object Database Here Nothing
        "root page {got} cannot be the root of this object" =>
        "its rows are looked for among orphaned pages";
    #[doc = "SQLite refuses to open such a database."]
    NameTwice "S005" "name-twice" SkipItem Object Database Elsewhere Nothing
        "the name stands in the schema more than once" =>
        "the first stays; its duplicates are listed";
    #[doc = "Byte damage, or a foreign writer."]
    TypeUnknown "S006" "type-unknown" SkipItem Object Database Here Nothing
        "the type of a schema row is none of table, index, view, trigger" =>
        "the row is set aside";
    #[doc = "tbl_name leads nowhere."]
    IndexWithoutTable "S007" "index-without-table" SkipItem Object Database Elsewhere Nothing
        "an index or trigger belongs to a table that is not there" =>
        "it is left out of the copy and listed";
    #[doc = "The CREATE text does not say them any more."]
    ColumnsGuessed "S008" "columns-guessed" Note Object Declaration Here Nothing
        "the columns are taken from the records" =>
        "the table is declared anew";
    #[doc = "Virtual tables such as FTS5 keep their content in ordinary tables of the same prefix."]
    ShadowTableMissing "S009" "shadow-table-missing" Note Shadow Database Elsewhere Nothing
        "a virtual table lacks one of its shadow tables" =>
        "the family is rebuilt or left to the finish script";
    #[doc = "What is left of a family whose CREATE VIRTUAL TABLE row is gone."]
    ShadowOrphan "S010" "shadow-orphan" SkipItem Object Database Elsewhere Nothing
        "a shadow table has no virtual table" =>
        "it goes to salvage, not into the copy";
    #[doc = "The application registers such collations; their order cannot be known here."]
    CollationUnknown "S011" "collation-unknown" Note Note Database Elsewhere Nothing
        "a collation is none of BINARY, NOCASE, RTRIM" =>
        "order is not checked under it; an index that needs it is left to the finish script";
    #[doc = "A function the application registers, or one that is not deterministic."]
    ExpressionUnknown "S012" "expression-unknown" Note Note Database Elsewhere Nothing
        "an expression uses what cannot be evaluated here" =>
        "the index or check that needs it is left to the finish script";
    #[doc = "The application loads the module."]
    ModuleUnknown "S013" "module-unknown" Note Note Database Elsewhere Nothing
        "a virtual table uses a module that is not built into SQLite" =>
        "its shadow tables are copied as they are";
    #[doc = "Every write to the table of such a trigger fails, in the evidence as it would in the copy."]
    DependsOnMissing "S014" "depends-on-missing" SkipItem Object Database Elsewhere Nothing
        "a trigger names a table or view that is not there" =>
        "it goes to the finish script: SQLite refuses every write that would run it";
    #[doc = "SQLite makes an index for each UNIQUE and PRIMARY KEY constraint and cannot work with the table when its schema row is lost."]
    AutoindexMissing "S015" "autoindex-missing" Note Object Declaration Elsewhere Nothing
        "the schema has no row for the index that a constraint makes" =>
        "the index is built anew";
    #[doc = "The tree of sqlite_schema is damaged and does not lead to this row."]
    SchemaRowElsewhere "S016" "schema-row-elsewhere" Note Object Declaration Elsewhere Nothing
        "the schema row of this object was found outside the tree of sqlite_schema" =>
        "it is taken; one that may be old only if a tree of the file fits it";
    #[doc = "The schema of the evidence does not have this object any more; the file given with --schema does."]
    SchemaRowGiven "S017" "schema-row-given" Note Object Declaration Elsewhere Nothing
        "the schema row of this object comes from the file given with --schema" =>
        "a tree of the file that fits it is taken for its own";
    #[doc = "SQLite reads the rows of sqlite_schema one by one and refuses the database at this one: the table is not known yet."]
    SchemaRowEarly "S018" "schema-row-early" Note Object Database Here Nothing
        "the row of an index or trigger stands before the row of its table" =>
        "in the copy it stands behind it";
    #[doc = "Two rows of sqlite_schema, or two root pages, stand in each other's place: each tree holds in its columns what the other table is declared for, and not what its own is."]
    RootsSwapped "S019" "roots-swapped" Note Object Database Here Nothing
        "the tree at {got} is that of another table, its own is at {want}" =>
        "each table has the tree that fits it";
    #[doc = "SQLite opens such a schema; only a query of the view fails, and an ALTER TABLE that has to look into all views."]
    ViewOfMissing "S020" "view-of-missing" Note Note Database Here Nothing
        "a view names a table or view that is not there" =>
        "it stands in the copy as it is";
    #[doc = "Bytes of it are damaged, or it has fewer columns than the records have values."]
    TextMended "S021" "text-mended" Note Object Database Here Nothing
        "the SQL text of an object is not what was written" =>
        "it stands in the copy as it was most likely meant; the report says what was assumed";
    #[doc = "The CREATE VIRTUAL TABLE row of a full-text index is gone, and the table that holds its text is still there."]
    OrphanContent "S022" "orphan-content" Note Data Database Here Nothing
        "{got} rows of text belong to a full-text index whose declaration is gone" =>
        "they stand in the copy as an ordinary table; the finish script says how the index is made from it";
    #[doc = "The CREATE VIRTUAL TABLE row of a full-text index is gone, and no other table holds its text, as far as the schema shows."]
    OrphanPostings "S023" "orphan-postings" SkipItem Data Database Here Nothing
        "a full-text index without its declaration may be the only copy of its text" =>
        "its tables go to salvage, not into the copy";
    #[doc = "The index lacks an entry, or its entry differs from the row."]
    RowNotInIndex "I001" "row-not-in-index" Note Object Database Elsewhere Nothing
        "a row of the table is not in the index" =>
        "the index is built anew";
    #[doc = "Its key and rowid are the last trace of the row."]
    IndexEntryWithoutRow "I002" "index-entry-without-row" Note Object Database Elsewhere Nothing
        "an index entry has no row" =>
        "the index is built anew; the entry is kept as a witness of a lost or deleted row";
    #[doc = "Lookups through such an index miss rows."]
    IndexOrder "I003" "index-order" Note Object Database Here Nothing
        "entries of the index are not in order" =>
        "the index is built anew";
    #[doc = "SQLite would refuse the second row."]
    UniqueBroken "I004" "unique-broken" SkipItem Object Database Elsewhere Breaker
        "two rows have the same key under UNIQUE" =>
        "the row that the index names stays; the other is set aside, or loses the value where it may be NULL";
    #[doc = "Counted by scanning both."]
    IndexCountDiffers "I005" "index-count-differs" Note Object Database Elsewhere Nothing
        "the index has {got} entries, the table gives {want}" =>
        "the index is built anew";
    #[doc = "The row and its entry in one index have the same rowid or primary key and not the same values. Nothing tells which of the two was changed."]
    RowAgainstIndex "I006" "row-against-index" Note Object Database Here Nothing
        "a row and its index entry disagree" =>
        "the row stays as it is and the index is built anew from it; what the index said goes to the salvage database";
    #[doc = "Two indexes, which are written apart from one another and from the table, both have another version of the row; or the row's text is not text and the index's is. The row is then more likely to be the one that was changed."]
    RowAgainstIndexes "I007" "row-against-indexes" Note Object Database Here Nothing
        "the indexes of a table contradict a row ({got} of them)" =>
        "the row stays as it is; what the indexes said goes to the salvage database";
    #[doc = "The structure record (row 10 of %_data) lists the segments of a search index. Without it every search fails; the text is not touched."]
    StructureRecordBad "Q001" "structure-record-bad" StopHere Object SearchIndex Here Nothing
        "the structure record of a search index holds {got}, the bound is {want}" =>
        "the index is built anew, from its content or, where it has none, from what of it can be read";
    #[doc = "Row 10 of %_data is not there."]
    StructureRecordMissing "Q002" "structure-record-missing" StopHere Object SearchIndex Here Nothing
        "a search index has no structure record" =>
        "the index is built anew, from its content or, where it has none, from what of it can be read";
    #[doc = "The structure record counts leaves that %_data does not have."]
    SegmentLeafMissing "Q003" "segment-leaf-missing" SkipItem Object SearchIndex Here Nothing
        "leaf {got} of segment {want} is missing" =>
        "the index is built anew, from its content or, where it has none, from what of it can be read";
    #[doc = "A leaf holds terms with the rows they occur in."]
    SegmentLeafBad "Q004" "segment-leaf-bad" SkipItem Object SearchIndex Here Nothing
        "a segment leaf holds {got}, the bound is {want}" =>
        "the rest of the leaf is not read; the index is built anew, from its content or, where it has none, from what of it can be read";
    #[doc = "Terms ascend within a segment; a search passes over those that do not."]
    TermOrder "Q005" "term-order" Note Object SearchIndex Here Nothing
        "a term on leaf {got} of segment {want} is not above the one before" =>
        "the index is built anew, from its content or, where it has none, from what of it can be read";
    #[doc = "%_idx leads a search to the leaf; a wrong row hides terms."]
    IdxDisagrees "Q006" "idx-disagrees" Note Object SearchIndex Here Nothing
        "a row of %_idx leads to leaf {got} of segment {want}, which does not fit" =>
        "the index is built anew, from its content or, where it has none, from what of it can be read";
    #[doc = "SQLite's integrity_check and searches pass, but the next segment with this id cannot be written: inserts fail with a constraint error."]
    IdxStale "Q007" "idx-stale" Note Object SearchIndex Here Nothing
        "a row of %_idx names leaf {got} of segment {want}, which the structure record does not list" =>
        "the index is built anew, from its content or, where it has none, from what of it can be read";
    #[doc = "A long list of rows has an index of its own."]
    DoclistIndexBad "Q008" "doclist-index-bad" Note Object SearchIndex Here Nothing
        "the doclist index of leaf {got} of segment {want} does not fit its leaves" =>
        "the index is built anew, from its content or, where it has none, from what of it can be read";
    #[doc = "%_docsize has a row for each indexed row. The content row was lost, or deleted without its search entry."]
    DocsizeWithoutRow "Q009" "docsize-without-row" Note Object SearchIndex Elsewhere Nothing
        "search index row {rowid} has no content row" =>
        "it is kept as a witness of a lost or deleted row";
    #[doc = "A row that search does not know: written while the index was off, or its entry was lost."]
    RowWithoutDocsize "Q010" "row-without-docsize" Note Object SearchIndex Elsewhere Nothing
        "content row {rowid} is not in the search index" =>
        "the index is built anew, from its content or, where it has none, from what of it can be read";
    #[doc = "%_docsize counts the tokens of each column."]
    DocsizeDiffers "Q011" "docsize-differs" Note Object SearchIndex Here Nothing
        "the token counts of row {rowid} differ from its text" =>
        "the index is built anew, from its content or, where it has none, from what of it can be read";
    #[doc = "Searches give wrong answers; or, when the index is the older and better witness, a text was changed."]
    IndexDiffersFromContent "Q012" "index-differs-from-content" Note Object SearchIndex Here Nothing
        "the index entries of row {rowid} differ from its text" =>
        "the index is built anew, from its content or, where it has none, from what of it can be read";
    #[doc = "Row 1 of %_data counts rows and tokens; ranking uses it."]
    AveragesDiffer "Q013" "averages-differ" Note Object SearchIndex Here Nothing
        "the averages record counts {got}, the content has {want}" =>
        "the index is built anew, from its content or, where it has none, from what of it can be read";
    #[doc = "FTS5 opens versions 4 and 5 only."]
    FtsVersionBad "Q014" "fts-version-bad" Note Object SearchIndex Here Nothing
        "%_config gives format version {got}" =>
        "the copy has version {want}";
    #[doc = "The CREATE VIRTUAL TABLE text is not one that FTS5 accepts."]
    FtsDeclarationBad "Q015" "fts-declaration-bad" SkipItem Object SearchIndex Here Nothing
        "the declaration of a search index does not parse" =>
        "the family goes to the finish script";
    #[doc = "The application registers the tokenizer; its tokens cannot be computed here."]
    FtsTokenizerUnknown "Q016" "fts-tokenizer-unknown" Note Note SearchIndex Elsewhere Nothing
        "a search index uses a tokenizer that is not built into FTS5" =>
        "the index is copied when it is whole, otherwise it goes to the finish script";
    #[doc = "Left by an interrupted merge, or by a lost structure record. Searches never read it."]
    FtsDataStray "Q017" "fts-data-stray" Note Note SearchIndex Here Nothing
        "row {rowid} of %_data belongs to no segment" =>
        "nothing depends on it; where a structure record was lost, its segment is read as well";
    #[doc = "Deleted rows of contentless_delete tables are kept in a hash."]
    TombstonesBad "Q018" "tombstones-bad" SkipItem Object SearchIndex Here Nothing
        "tombstone page {got} of segment {want} is missing or bad" =>
        "deleted rows of the segment may show again";
    #[doc = "Tokens of a row that the content does not have: often the last trace of a lost row, from which its text can be read back."]
    PostingsWithoutRow "Q019" "postings-without-row" Note Object SearchIndex Elsewhere Nothing
        "the search index has entries of row {rowid}, which the content does not have" =>
        "the text is read back out of the index";
    #[doc = "Older releases (3.40 is one) end a text at its first NUL when they cut it to trigrams, newer ones (3.54 is one) pass over it. The same untouched file is whole for one and malformed for the other."]
    FtsOlderNulRule "Q020" "fts-older-nul-rule" Note Note SearchIndex Elsewhere Nothing
        "the index ends texts at their first NUL, as older releases do" =>
        "the copy keeps the rule that the index has";
    #[doc = "A contentless table has nothing but its index; %_docsize counts the tokens of each row."]
    DocsizeDiffersFromPostings "Q021" "docsize-differs-from-postings" Note Object SearchIndex Here Nothing
        "%_docsize counts other tokens of row {rowid} than the {want} that the index holds" =>
        "the counts are written anew from the index; tokens of a leaf that is lost stay lost";
    #[doc = "A contentless table has nothing but its index; %_docsize lists its rows."]
    PostingsWithoutDocsize "Q022" "postings-without-docsize" Note Object SearchIndex Here Nothing
        "the index holds row {rowid}, %_docsize does not list it" =>
        "it stays with counts made anew from the index; where damage may hide that it was deleted, it does not";
    #[doc = "FTS5 gives every table an averages record when it makes it; without it every insert fails."]
    AveragesMissing "Q023" "averages-missing" Note Object SearchIndex Here Nothing
        "a search index has no averages record" =>
        "the index is built anew, from its content or, where it has none, from what of it can be read";
    #[doc = "Older releases (3.40 is one) give a real number 15 digits where newer ones (3.54 is one) give it 17, and stem twice where porter is named twice. The same untouched file is whole for one and malformed for the other."]
    FtsOlderRelease "Q024" "fts-older-release" Note Note SearchIndex Here Nothing
        "the index holds {got} of {want} rows as an older release of SQLite reads their real numbers or stems their words" =>
        "the copy keeps the rule that the index has";
    #[doc = "The index of an FTS3 or FTS4 table is a set of b-trees of terms; searches fail on one that does not decode. The text is not touched."]
    Fts3SegmentBad "Q025" "fts3-segment-bad" Note Object SearchIndex Here Nothing
        "segment {got} of level {want} does not decode, or blocks of it are missing" =>
        "the text stands as an ordinary table; the finish script makes the index from it";
    #[doc = "An R-tree is three tables: its nodes, the node above each node, the leaf of each row. Boxes of a node lie within the box that names it."]
    RtreeDiffers "Q026" "rtree-differs" Note Object SearchIndex Here Nothing
        "the tables of an R-tree do not say the same" =>
        "the R-tree is built anew from the boxes that can be read; rows whose box is lost are named";
    #[doc = "A record begins with the length of its header."]
    HeaderSizeBad "R001" "header-size-bad" SkipItem Object Database Here Unreadable
        "a record header of {got} bytes is declared, the payload has {want}" =>
        "the row is set aside";
    #[doc = "Types 10 and 11 never stand in a database file (section 2.1); SQLite reads them as NULL."]
    SerialTypeReserved "R002" "serial-type-reserved" Note Object Database Here Unreadable
        "serial type {got} is reserved" =>
        "the value reads as NULL, as in SQLite; where the sizes of the row do not add up it is set aside";
    #[doc = "The declared sizes of the values do not add up to the payload."]
    BodyShort "R003" "body-short" SkipItem Object Database Here Unreadable
        "the values need {want} bytes, the payload has {got}" =>
        "the row is partial; it is set aside";
    #[doc = "The declared sizes of the values do not add up to the payload."]
    BodyLong "R004" "body-long" Note Housekeeping Database Here Nothing
        "the payload has {got} bytes, its values need {want}" =>
        "surplus bytes are not part of any value";
    #[doc = "A later ADD COLUMN would expose them."]
    MoreValuesThanColumns "R005" "more-values-than-columns" Note Note Database Elsewhere Nothing
        "the record has {got} values, the table {want} columns" =>
        "the surplus values are cut from the live row and kept in salvage";
    #[doc = "SQLite does not check text; an application may fail on it."]
    TextNotDecodable "R006" "text-not-decodable" Note Note Database Elsewhere Nothing
        "a text value is not valid in the encoding of the database" =>
        "its bytes and its class are kept";
    #[doc = "The copy must pass integrity_check."]
    NullInNotNull "R007" "null-in-not-null" SkipItem Object Database Here Violation
        "column {got} holds NULL and is declared NOT NULL" =>
        "the row is set aside with the statement that brings it back";
    #[doc = "STRICT types and column affinity fix which storage classes a column can hold."]
    TypeBroken "R008" "type-broken" SkipItem Object Database Here Breaker
        "column {got} holds a value of a class that its declaration excludes" =>
        "the row is set aside with the statement that brings it back";
    #[doc = "SQLite would refuse the row."]
    CheckFalse "R009" "check-false" SkipItem Object Database Here Violation
        "CHECK constraint {got} of the table is false for the row" =>
        "the row is set aside with the statement that brings it back";
    #[doc = "A STORED generated column holds what its expression gave when the row was written."]
    GeneratedDiffers "R010" "generated-differs" Note Object Database Here Nothing
        "stored generated column {got} differs from its expression" =>
        "the stored value is kept in the report; the copy holds the computed one";
    #[doc = "An index entry or WITHOUT ROWID row cannot be shorter than its key."]
    FewerKeyValues "R011" "fewer-key-values" SkipItem Object Database Here Nothing
        "the record has {got} values, its key alone needs {want}" =>
        "the entry is set aside";
    #[doc = "SQLite computes the entry of such an index when it writes or checks a row, and ends with the error. Text of an expression index that is no JSON any more is the usual case."]
    ExpressionRaises "R012" "expression-raises" SkipItem Object Database Here Nothing
        "an expression of an index raises an error for the row" =>
        "the row is set aside with the statement that brings it back";
    #[doc = "Foreign keys are not part of integrity_check; the parent may have been set aside or lost."]
    ForeignKeyBroken "V001" "foreign-key-broken" Note Note Database Elsewhere Nothing
        "a row names a parent that is not there" =>
        "the row stays live and is listed";
    #[doc = "The leaf came back because its tree had lost it, but a whole index of the table has no entry for this row: it was deleted before the damage."]
    DeletedRow "V002" "deleted-row" SkipItem Note Database Elsewhere Aside
        "a row of an orphaned leaf is not in a whole index of its table" =>
        "the row was deleted: it goes to salvage, not into the live table";
    #[doc = "The rowid breaks the order of its leaf or the bounds of its parents, or the cell lies in free space, and no index has an entry for it."]
    PhantomRow "V003" "phantom-row" SkipItem Object Database Here Aside
        "the place and the rowid of a row contradict each other, and no index confirms the row" =>
        "the row is set aside; where neighbours leave room for a rowid, its statement suggests it";
    #[doc = "An orphan: lost by damage, or left behind by a deletion."]
    PageWithoutOwner "X001" "page-without-owner" Note Housekeeping Database Elsewhere Nothing
        "page {got} belongs to no tree, no chain and not to the freelist" =>
        "it is searched for rows";
    #[doc = "Every loop over evidence has a bound, so that no file can keep the tool busy for ever. It is a limit of the tool, not damage to the file."]
    LimitReached "X004" "limit-reached" Note Note Database Elsewhere Nothing
        "rootpage stopped a search at its own limit: {got}, at most {want}" =>
        "nothing is invented for what was not looked at; the words behind the finding say which search it was and what follows";
    #[doc = "It has no trace of database pages."]
    NotSqliteContent "X005" "not-sqlite-content" Note Object Database Here Nothing
        "the file is no database" =>
        "no copy is written";
    #[doc = "Foreign bytes, or a second file, appended to the database."]
    TrailingBytes "X006" "trailing-bytes" Note Housekeeping Database Elsewhere Nothing
        "{got} bytes follow the last page of the database" =>
        "they are not part of it";
    #[doc = "Somebody who knows better edited the page map; the report lists every page that it changes."]
    PageOverruled "X008" "page-overruled" Note Object Database Elsewhere Nothing
        "the given map says what page {got} is, against the evidence" =>
        "the map counts: rows of the page enter or leave its table";
    #[doc = "An application that lets its file grow by chunks (SQLITE_FCNTL_CHUNK_SIZE) leaves such a tail, and so does a download that reserved its space."]
    TrailingZeros "X009" "trailing-zeros" Note Note Database Here Nothing
        "{got} zero bytes follow the last page of the database" =>
        "they are not part of it";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sound() {
        let mut ids: Vec<_> = Code::ALL.iter().map(|c| c.problem().id).collect();
        let mut names: Vec<_> = Code::ALL.iter().map(|c| c.problem().name).collect();
        ids.sort_unstable();
        ids.dedup();
        names.sort_unstable();
        names.dedup();
        assert_eq!(ids.len(), Code::ALL.len());
        assert_eq!(names.len(), Code::ALL.len());
        for code in Code::ALL {
            let p = code.problem();
            assert!(!p.action.is_empty() && !p.meaning.trim().is_empty(), "{}", p.id);
            assert!(!p.sentence.ends_with('.') && !p.sentence.contains("corrupt"), "{}", p.id);
            assert_eq!(Code::find(p.id), Some(*code));
            assert_eq!(Code::find(p.name), Some(*code));
        }
    }
}
