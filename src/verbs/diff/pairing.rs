//! Which row of A belongs to which row of B.

use crate::format::{Encoding, Value};
use crate::schema::IndexSource;
use crate::sort::key::KeyOrder;
use crate::survey::plan::{IndexPlan, TablePlan};

use super::side::Table;

/// How the rows of two tables are paired and compared.
pub(crate) struct Pairing {
    /// The columns of the key, for people.
    pub(crate) names: Vec<String>,
    /// The columns that both have: name, place in A, place in B.
    pub(crate) common: Vec<(String, usize, usize)>,
    /// Columns of A alone.
    pub(crate) only_a: Vec<String>,
    /// Columns of B alone.
    pub(crate) only_b: Vec<String>,
    /// Equal rowids and records are equal rows: nothing has to be decoded.
    pub(crate) same_layout: bool,
    /// By columns; `None`: by rowid.
    columns: Option<Columns>,
}

/// A key of columns.
struct Columns {
    /// Places in A and in B.
    places: Vec<(usize, usize)>,
    order: KeyOrder,
    /// Text is brought to UTF-8 first: the files store it differently.
    as_utf8: bool,
    /// Both trees are in this order already.
    natural: bool,
}

/// One of the two databases.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Which {
    A,
    B,
}

impl Pairing {
    pub(crate) fn of(a: &Table<'_>, b: &Table<'_>, by_primary_key: bool) -> Pairing {
        let find = |plan: &TablePlan, name: &str| plan.columns.iter().position(|c| c.name.eq_ignore_ascii_case(name));
        let common: Vec<(String, usize, usize)> =
            a.plan.columns.iter().enumerate().filter_map(|(i, c)| Some((c.name.clone(), i, find(b.plan, &c.name)?))).collect();
        let alone = |plan: &TablePlan, other: &TablePlan| {
            plan.columns.iter().filter(|c| find(other, &c.name).is_none()).map(|c| c.name.clone()).collect::<Vec<_>>()
        };
        let mut pairing = Pairing {
            names: Vec::new(),
            only_a: alone(a.plan, b.plan),
            only_b: alone(b.plan, a.plan),
            same_layout: same_layout(a.plan, b.plan),
            columns: None,
            common,
        };
        let rowids = a.plan.key.is_none() && b.plan.key.is_none();
        // Where the key is the rowid under another name, both are the same.
        let aliased = a.plan.alias.is_some() && b.plan.alias.is_some();
        let declared = if by_primary_key && rowids && !aliased { pairing.places(&a.primary_key) } else { None };
        if rowids && declared.is_none() {
            let alias = a.plan.alias.and_then(|i| a.plan.columns.get(i)).map(|c| c.name.clone());
            pairing.names = vec![alias.unwrap_or_else(|| "rowid".to_owned())];
            return pairing;
        }
        let columns = declared
            .map(|places| binary(places, a.plan, b.plan))
            .or_else(|| pairing.natural(a.plan, b.plan))
            .or_else(|| {
                let key = a.plan.key.as_ref().map(|k| key_names(a.plan, k)).or(b.plan.key.as_ref().map(|k| key_names(b.plan, k)))?;
                Some(binary(pairing.places(&key)?, a.plan, b.plan))
            })
            .unwrap_or_else(|| binary(pairing.common.iter().map(|c| (c.1, c.2)).collect(), a.plan, b.plan));
        pairing.names = columns.places.iter().filter_map(|(i, _)| a.plan.columns.get(*i)).map(|c| c.name.clone()).collect();
        pairing.columns = Some(columns);
        pairing
    }

    /// The places of columns by name; `None` when one is not in both, or there are none.
    fn places(&self, names: &[String]) -> Option<Vec<(usize, usize)>> {
        let place = |name: &String| self.common.iter().find(|c| c.0.eq_ignore_ascii_case(name)).map(|c| (c.1, c.2));
        names.iter().map(place).collect::<Option<Vec<_>>>().filter(|p| !p.is_empty())
    }

    /// Two WITHOUT ROWID tables with the same key: their trees are in its order.
    fn natural(&self, a: &TablePlan, b: &TablePlan) -> Option<Columns> {
        let (x, y) = (a.key.as_ref()?, b.key.as_ref()?);
        let (names_a, names_b) = (key_names(a, x), key_names(b, y));
        let same_names = names_a.len() == names_b.len() && names_a.iter().zip(&names_b).all(|(p, q)| p.eq_ignore_ascii_case(q));
        let same_order = x.columns.iter().zip(&y.columns).all(|(p, q)| p.collation == q.collation && p.desc == q.desc);
        if !same_names || !same_order || a.encoding != b.encoding {
            return None;
        }
        let order = KeyOrder::new(x.columns.iter().map(|c| (&c.collation, c.desc)), a.encoding)?;
        Some(Columns { places: self.places(&names_a)?, order, as_utf8: false, natural: true })
    }

    /// Whether both trees are in the order of the pairing, so that neither has to be sorted first.
    pub(crate) fn natural_order(&self) -> bool {
        self.columns.as_ref().is_none_or(|c| c.natural)
    }

    /// The columns of the key on one side; `None`: the rowid.
    pub(crate) fn key_columns(&self, which: Which) -> Option<impl Iterator<Item = usize> + '_> {
        let columns = self.columns.as_ref()?;
        Some(columns.places.iter().map(move |p| if which == Which::A { p.0 } else { p.1 }))
    }

    /// Appends the key of these values, which are those of [`Pairing::key_columns`].
    pub(crate) fn encode<'v>(&self, out: &mut Vec<u8>, values: impl Iterator<Item = Value<'v>>, encoding: Encoding) {
        let Some(columns) = &self.columns else { return };
        for (i, value) in values.enumerate() {
            match value {
                Value::Text(stored) if columns.as_utf8 => columns.order.push(out, i, Value::Text(&encoding.to_utf8(stored))),
                value => columns.order.push(out, i, value),
            }
        }
    }
}

/// A key in the order of the bytes, whatever the trees are in.
fn binary(places: Vec<(usize, usize)>, a: &TablePlan, b: &TablePlan) -> Columns {
    Columns { places, order: KeyOrder::binary(a.encoding), as_utf8: a.encoding != b.encoding, natural: false }
}

fn key_names(plan: &TablePlan, key: &IndexPlan) -> Vec<String> {
    let column = |source: &IndexSource| match source {
        IndexSource::Column(i) => plan.columns.get(*i).map(|c| c.name.clone()),
        _ => None,
    };
    key.columns.iter().filter_map(|c| column(&c.source)).collect()
}

/// Whether a record means the same in both tables.
fn same_layout(a: &TablePlan, b: &TablePlan) -> bool {
    a.encoding == b.encoding
        && a.stored == b.stored
        && a.alias == b.alias
        && a.columns.len() == b.columns.len()
        && a.columns.iter().zip(&b.columns).all(|(x, y)| {
            x.name.eq_ignore_ascii_case(&y.name)
                && x.affinity == y.affinity
                && x.position == y.position
                && x.default == y.default
                // A computed value may come from another expression.
                && x.position.is_some()
        })
}
