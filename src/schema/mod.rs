//! L4: `sqlite_schema` as data: tables, indexes, families, record layouts, expressions.
//!
//! Nothing here reads a b-tree; everything is a function over rows that the caller has read.

pub mod catalog;
pub mod ddl;
pub mod families;
pub mod key_order;
pub mod layout;
pub(crate) mod one_line;
pub mod script;
pub mod view;

pub use crate::expr::{Affinity, Collation, Name, StrictType, quoted};
pub use catalog::{Catalog, CatalogOptions, Object, ObjectKind, RowSource, SchemaRow};
pub use families::{Family, FtsModule, FtsPart};
pub use layout::{IndexLayout, IndexPart, IndexSource, KeyPart, TableLayout};
pub use view::{Inner, ViewPlan};
