//! What was decided about a file: page size, where page 1 is, how far the pages reach, and what each decision rests on.

use crate::finding::{Origin, Site};
use crate::format::header::HEADER_LEN;
use crate::format::{DatabaseHeader, Encoding};
use crate::ids::{PageNo, PageSize};

/// A field, the value taken for it, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// Which field.
    pub field: &'static str,
    /// The value taken.
    pub value: String,
    /// What it rests on.
    pub evidence: String,
    /// Whether the header in force says otherwise, or nothing.
    pub overrules: bool,
}

impl Decision {
    pub(super) fn new(field: &'static str, value: impl ToString, evidence: impl Into<String>) -> Decision {
        Decision { field, value: value.to_string(), evidence: evidence.into(), overrules: true }
    }

    /// Whether a header says the same.
    pub(super) fn agrees(&self, h: &DatabaseHeader) -> bool {
        let said = match self.field {
            "page size" => h.page_size().map(PageSize::get),
            "reserved bytes" => Some(u32::from(h.reserved)),
            "page count" => Some(h.page_count),
            "encoding" => Some(h.encoding_raw),
            "other header fields" => return true,
            _ => None,
        };
        said.is_some_and(|n| n.to_string() == self.value)
    }
}

/// Where the image of page 1 is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PageOne {
    /// At the start of the file, or in a sidecar that covers it.
    InPlace,
    /// At this byte offset of the main file.
    At(u64),
    /// Put together anew from shifted bytes.
    Rebuilt(Vec<u8>),
    /// Nowhere: what stands at its place is something else.
    Lost,
}

/// The decisions that all layers above read.
#[derive(Debug, Clone)]
pub struct Geometry {
    /// Page size.
    pub page_size: PageSize,
    /// Unused bytes at the end of each page.
    pub reserved: u8,
    /// Text encoding.
    pub encoding: Encoding,
    /// Pages of the main file that belong to the database, a cut one included.
    pub page_count: u32,
    /// Bytes by which the pages from [`Geometry::shift_from`] on are displaced: negative where bytes were lost. Where they are
    /// whole pages, those before it are not there.
    pub byte_shift: i64,
    /// The first page that the byte shift applies to.
    pub shift_from: PageNo,
    /// A page that was put together from both sides of a byte shift.
    pub spliced: Option<(PageNo, Vec<u8>)>,
    /// Pages by which the whole file is displaced: -1 when the first page is missing.
    pub page_shift: i32,
    /// The header fields as decided; `None` when no header is left anywhere.
    pub header: Option<DatabaseHeader>,
    /// Where page 1 is.
    pub page_one: PageOne,
    /// Bytes behind the last page that are not part of the database.
    pub trailing: u64,
    /// Where in the main file another database begins, in bytes.
    pub second_database: Option<u64>,
    /// How each field was decided.
    pub decisions: Vec<Decision>,
}

impl Geometry {
    /// Usable bytes of a page.
    #[must_use]
    pub fn usable(&self) -> u32 {
        self.page_size.get().saturating_sub(u32::from(self.reserved))
    }

    /// How many pages right before [`Geometry::shift_from`] are not in the file.
    #[must_use]
    pub fn lost_pages(&self) -> u32 {
        let bytes = if self.byte_shift < 0 { self.byte_shift.unsigned_abs() } else { 0 };
        if self.page_size.rest(bytes) == 0 { self.page_size.whole_pages(bytes) } else { 0 }
    }

    /// Where a page starts in the main file, in bytes; `None` when it would start before the file.
    #[must_use]
    pub fn offset(&self, no: PageNo) -> Option<u64> {
        let at = i64::try_from(no.file_range(self.page_size).start).ok()?;
        let pages = i64::from(self.page_shift).checked_mul(i64::from(self.page_size.get()))?;
        let bytes = if no >= self.shift_from { self.byte_shift } else { 0 };
        u64::try_from(at.checked_add(pages)?.checked_add(bytes)?).ok()
    }

    pub(super) fn decide(&mut self, field: &'static str, value: impl ToString, evidence: impl Into<String>) {
        self.decisions.push(Decision::new(field, value, evidence));
    }
}

/// How many things of a header are as they must be, 0 to 9; 5 and more are a header.
#[must_use]
pub fn grade(bytes: &[u8]) -> u32 {
    let Ok(h) = DatabaseHeader::read(bytes) else { return 0 };
    let version = |v: u8| v == 1 || v == 2;
    // A row of zeros must not count for fields where zero is right.
    if bytes.iter().take(HEADER_LEN).all(|&b| b == 0) {
        return 0;
    }
    let points = [
        (h.magic_ok(), 2),
        (h.page_size().is_some(), 1),
        (h.fractions == [64, 32, 32], 2),
        (version(h.write_version) && version(h.read_version), 1),
        (h.schema_format <= 4, 1),
        (h.encoding_raw <= 3, 1),
        (h.expansion == [0; 20], 1),
    ];
    points.iter().filter(|(ok, _)| *ok).map(|(_, n)| n).sum()
}

/// Page 1 of the main file as the place of a finding.
pub(super) fn site_one() -> Site {
    Site { origin: Origin::Main, page: Some(PageNo::ONE), ..Site::default() }
}
