//! Branches and commits of a log as the picture in the report has them.

/// A commit of a lane.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Dot {
    /// Its number on the branch.
    pub number: u32,
    /// Its frame.
    pub frame: u32,
    /// Frames of its transaction.
    pub frames: u32,
    /// Pages of the database after it.
    pub pages: u32,
}

/// A branch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lane {
    /// Its name.
    pub name: String,
    /// What it is, in words.
    pub kind: String,
    /// The commit of the first lane that it leaves; 0: the main file.
    pub leaves_at: u32,
    /// Its own commits.
    pub commits: Vec<Dot>,
    /// Frames behind its last commit.
    pub tail: u32,
}

/// Branches with what is shown of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Timeline {
    /// The branches, first the one that SQLite reads.
    pub lanes: Vec<Lane>,
    /// The lane and the commit that the report is about; 0: the main file.
    pub shown: Option<(usize, u32)>,
}
