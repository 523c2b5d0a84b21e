//! A row that was found, with the place it was found at, in a form that can be sorted outside memory.

use crate::bytes::u32_at;
use crate::carve::leaf::Spot;
use crate::finding::Origin;
use crate::format::record::encode_record;
use crate::format::{Fields, Value};
use crate::ids::{FrameNo, PageNo, idx, small, wide};
use crate::recover::{How, Trust};

/// What kind of page a row was found on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// A page of a tree: in bytes that no live cell has.
    TreePage,
    /// A leaf of the freelist.
    FreePage,
    /// A trunk of the freelist: its first bytes are overwritten.
    TrunkPage,
    /// A page that nothing reaches.
    LostPage,
    /// A committed image that a later one covers.
    Superseded,
    /// The main file under an image of the log or a rolled back one.
    UnderLog,
    /// A before-image of a rollback journal.
    Journal,
    /// A transaction that did not commit.
    Uncommitted,
    /// Frames that the chain of the log does not reach.
    Detached,
    /// An earlier generation of the log.
    OlderGeneration,
    /// A page behind the end of the database.
    BehindEnd,
}

impl Source {
    const ALL: [Source; 11] = [
        Source::TreePage,
        Source::FreePage,
        Source::TrunkPage,
        Source::LostPage,
        Source::Superseded,
        Source::UnderLog,
        Source::Journal,
        Source::Uncommitted,
        Source::Detached,
        Source::OlderGeneration,
        Source::BehindEnd,
    ];

    /// What outputs call it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Source::TreePage => "page in use",
            Source::FreePage => "free page",
            Source::TrunkPage => "freelist trunk",
            Source::LostPage => "lost page",
            Source::Superseded => "superseded image",
            Source::UnderLog => "main file under a newer image",
            Source::Journal => "journal before-image",
            Source::Uncommitted => "uncommitted frame",
            Source::Detached => "detached frame",
            Source::OlderGeneration => "frame of an earlier generation",
            Source::BehindEnd => "behind the last page",
        }
    }

    /// Whether it is an image of the page at another time.
    pub(crate) const fn is_version(self) -> bool {
        matches!(
            self,
            Source::Superseded | Source::UnderLog | Source::Journal | Source::Uncommitted | Source::Detached | Source::OlderGeneration
        )
    }
}

/// Where a row lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) origin: Origin,
    pub(crate) source: Source,
    pub(crate) spot: Spot,
    pub(crate) page: PageNo,
    pub(crate) at: u32,
    pub(crate) len: u32,
}

impl Place {
    /// In words, for lists of places.
    pub(crate) fn words(&self) -> String {
        let origin = crate::report::collect::origin(self.origin);
        format!("{origin} page {} offset {} length {} ({}, {})", self.page, self.at, self.len, self.source.word(), self.spot.word())
    }

    /// How the row was found.
    pub(crate) fn how(&self) -> How {
        match (self.source, self.spot) {
            (Source::TreePage, Spot::Freeblock) => How::Freeblock,
            (Source::TreePage, _) => How::Gap,
            (Source::FreePage | Source::TrunkPage, _) => How::FreePage,
            (Source::LostPage | Source::BehindEnd, _) => How::LostPage,
            (Source::Uncommitted, _) => How::Uncommitted,
            _ => How::OldVersion,
        }
    }
}

/// A row that was found.
#[derive(Debug, Clone)]
pub(crate) struct Found {
    /// The shape that it fits best.
    pub(crate) shape: usize,
    /// Other shapes that it fits about as well.
    pub(crate) others: Vec<u32>,
    pub(crate) rowid: Option<i64>,
    /// Its record, as far as it is there.
    pub(crate) payload: Vec<u8>,
    /// Which values are known, by place in the record.
    pub(crate) known: Vec<bool>,
    /// Every value is known.
    pub(crate) complete: bool,
    pub(crate) place: Place,
    /// How many readings of its head are about as good; 1: there is no other.
    pub(crate) solutions: u32,
    pub(crate) bits: i32,
    /// What of it is gone, in words.
    pub(crate) gone: String,
    /// The index whose entry it is.
    pub(crate) index: String,
    pub(crate) trust: Trust,
    /// Its head was put together again.
    pub(crate) made_up: bool,
}

impl Found {
    /// As bytes.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        let (kind, number) = match self.place.origin {
            Origin::Main => (0, 0),
            Origin::Wal { frame } => (1, frame.0),
            Origin::Journal { record } => (2, record),
        };
        let place = |n: usize| i64::from(small(n));
        let source = Source::ALL.iter().position(|s| *s == self.place.source).unwrap_or(0);
        let spot = Spot::ALL.iter().position(|s| *s == self.place.spot).unwrap_or(0);
        let others: Vec<u8> = self.others.iter().flat_map(|n| n.to_be_bytes()).collect();
        let known: Vec<u8> = self.known.iter().map(|k| u8::from(*k)).collect();
        let values = [
            Value::Int(place(self.shape)),
            Value::Blob(&others),
            self.rowid.map_or(Value::Null, Value::Int),
            Value::Blob(&self.payload),
            Value::Blob(&known),
            Value::Int(i64::from(self.complete)),
            Value::Int(kind),
            Value::Int(i64::from(number)),
            Value::Int(place(source)),
            Value::Int(place(spot)),
            Value::Int(i64::from(self.place.page.get())),
            Value::Int(i64::from(self.place.at)),
            Value::Int(i64::from(self.place.len)),
            Value::Int(i64::from(self.solutions)),
            Value::Int(i64::from(self.bits)),
            Value::Text(self.gone.as_bytes()),
            Value::Text(self.index.as_bytes()),
            Value::Int(i64::from(self.trust == Trust::Linked)),
            Value::Int(i64::from(self.made_up)),
        ];
        out.clear();
        encode_record(out, values.iter().copied());
    }

    /// From what [`Found::encode`] made; `None` for anything else.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Found> {
        let mut fields = Fields::new();
        fields.read(bytes, wide(bytes.len())).ok()?;
        let values: Vec<Value<'_>> = fields.values(bytes).collect();
        let int = |i: usize| values.get(i).copied().and_then(Value::as_int);
        let number = |i: usize| int(i).and_then(|n| u32::try_from(n).ok());
        let blob = |i: usize| match values.get(i) {
            Some(Value::Blob(b) | Value::Text(b)) => Some(*b),
            _ => None,
        };
        let text = |i: usize| blob(i).map(|b| String::from_utf8_lossy(b).into_owned());
        let others = blob(1)?;
        let origin = match number(6)? {
            1 => Origin::Wal { frame: FrameNo(number(7)?) },
            2 => Origin::Journal { record: number(7)? },
            _ => Origin::Main,
        };
        Some(Found {
            shape: idx(number(0)?),
            others: (0..others.len()).step_by(4).filter_map(|at| u32_at(others, at)).collect(),
            rowid: int(2),
            payload: blob(3)?.to_vec(),
            known: blob(4)?.iter().map(|b| *b != 0).collect(),
            complete: int(5)? != 0,
            place: Place {
                origin,
                source: *Source::ALL.get(idx(number(8)?))?,
                spot: *Spot::ALL.get(idx(number(9)?))?,
                page: PageNo::new(number(10)?)?,
                at: number(11)?,
                len: number(12)?,
            },
            solutions: number(13)?,
            bits: i32::try_from(int(14)?).ok()?,
            gone: text(15)?,
            index: text(16)?,
            trust: if int(17)? == 0 { Trust::Plausible } else { Trust::Linked },
            made_up: int(18)? != 0,
        })
    }

    /// How many values from the first on are known without a gap.
    pub(crate) fn leading(&self) -> usize {
        self.known.iter().take_while(|k| **k).count()
    }
}
