//! `--map FILE`: what a hand-edited page map says against the survey.
//!
//! Tests:    whether each line that differs can be followed: pages of the file, objects of the schema, roles that the bytes bear.
//! Collects: a ruling for each page that the map takes for something else.
//! Leaves:   lines that say what the survey says: a map that is given back as it was printed changes nothing.

use std::path::Path;

use crate::ctx::Ctx;
use crate::error::{Error, Result};
use crate::evidence::{InputFile, OpenOptions};
use crate::ids::{PageNo, idx};
use crate::report::human;
use crate::report::model::{Input, InputRole, Overruled};
use crate::report::page_map::{self, MapLine, MapOwner};
use crate::schema::Object;
use crate::survey::Survey;
use crate::tree::{Given, Owner, Role, Ruling, Rulings, TreeKind};
use crate::verbs::evidence::input;

/// The map that was given, and what follows from it.
#[derive(Debug)]
pub(crate) struct Ruled {
    /// The rulings.
    pub(crate) rulings: Rulings,
    /// The same for people, as runs.
    pub(crate) overruled: Vec<Overruled>,
    /// The file.
    pub(crate) input: Input,
}

/// Reads a map and holds it against the survey.
///
/// # Errors
/// I/O; `Usage` names the first line that is no line of a map or cannot be followed.
pub(crate) fn rule(path: &Path, survey: &Survey<'_>, ctx: &Ctx) -> Result<Ruled> {
    let file = InputFile::open(path, ctx, &OpenOptions::new())?;
    let wrong = |what: String| Error::Usage { what: format!("{}: {what}", path.display()) };
    let text = std::str::from_utf8(file.bytes()).map_err(|e| {
        let line = file.bytes().iter().take(e.valid_up_to()).filter(|b| **b == b'\n').count().saturating_add(1);
        wrong(format!("line {line}: not UTF-8 text"))
    })?;
    let lines = page_map::parse(text).map_err(wrong)?;
    let mut said: Vec<Option<usize>> = vec![None; idx(survey.pages.count())];
    let mut meant: Vec<(Role, Given, Option<String>)> = Vec::with_capacity(lines.len());
    for (i, line) in lines.iter().enumerate() {
        ctx.check()?;
        let at = |what: String| wrong(format!("line {}: {what}", line.line));
        let role = Role::from_word(&line.role).ok_or_else(|| {
            let known: Vec<&str> = Role::ALL.iter().map(|r| r.word()).collect();
            at(format!("\"{}\" is no role; there are: free, {}", human::name(&line.role), known.join(", ")))
        })?;
        let start = idx(line.first.saturating_sub(1));
        let pages = said.get_mut(start..start.saturating_add(idx(line.count))).ok_or_else(|| {
            let last = line.first.saturating_add(line.count.saturating_sub(1));
            let pages = if line.count == 1 { format!("page {last} is not") } else { format!("pages {} to {last} are not all", line.first) };
            at(format!("{pages} in the database, which has {} pages", survey.pages.count()))
        })?;
        pages.fill(Some(i));
        let object = match line.owner {
            MapOwner::None => None,
            MapOwner::Root(root) => {
                let found = survey.catalog.objects().iter().find(|o| o.root.is_some_and(|r| r.0.get() == root));
                Some(found.ok_or_else(|| at(format!("no object has root page {root}")))?)
            }
            MapOwner::Object(id) => {
                let found = survey.catalog.objects().iter().find(|o| o.id.0 == id && o.kind.has_tree());
                Some(found.ok_or_else(|| at(format!("there is no table or index with number {id}")))?)
            }
        };
        let given = object.map_or(Given::Nobody, |o| o.root.map_or(Given::Object(o.id), |r| Given::Root(r.0)));
        meant.push((role, given, object.map(told)));
    }
    let mut ruled = Ruled { rulings: Rulings::new(), overruled: Vec::new(), input: input(&file, InputRole::Map) };
    let mut page = Some(PageNo::ONE);
    for i in said {
        let Some(no) = page else { break };
        page = no.next();
        let Some((line, (role, given, owner))) = i.and_then(|i| Some((lines.get(i)?, meant.get(i)?))) else { continue };
        let ruling = Ruling { role: *role, given: if role.is_tree() { *given } else { Given::Nobody } };
        if agrees(survey, no, line, ruling) {
            continue;
        }
        can_be(survey, no, ruling).map_err(|what| wrong(format!("line {}: {what}", line.line)))?;
        ruled.rulings.insert(no, ruling);
        let owner = if role.is_tree() { owner.clone() } else { None };
        ruled.push(survey, no, line, ruling, owner);
    }
    Ok(ruled)
}

impl Ruled {
    fn push(&mut self, survey: &Survey<'_>, no: PageNo, line: &MapLine, ruling: Ruling, owner: Option<String>) {
        let was_role = survey.claims.role(no).word();
        let was_owner = owner_of(survey, no).map(told);
        if let Some(last) = self.overruled.last_mut()
            && last.first.checked_add(last.count) == Some(no.get())
            && last.line == line.line
            && last.was_role == was_role
            && last.was_owner == was_owner
        {
            last.count = last.count.saturating_add(1);
            return;
        }
        self.overruled.push(Overruled {
            first: no.get(),
            count: 1,
            was_role: was_role.to_owned(),
            was_owner,
            role: ruling.role.word().to_owned(),
            owner,
            line: line.line,
        });
    }
}

fn told(object: &Object) -> String {
    format!("{} {}", object.kind.label(), object.name.text())
}

fn owner_of<'s>(survey: &'s Survey<'_>, no: PageNo) -> Option<&'s Object> {
    let Owner(place) = survey.claims.owner(no)?;
    survey.trees.get(idx(place)).and_then(|t| survey.catalog.get(t.object))
}

/// Whether the line says what the survey says. Pages that no tree has need no owner in a map.
fn agrees(survey: &Survey<'_>, no: PageNo, line: &MapLine, ruling: Ruling) -> bool {
    if survey.claims.role(no) != ruling.role {
        return false;
    }
    let owner = owner_of(survey, no);
    match line.owner {
        _ if !ruling.role.is_tree() && ruling.role != Role::Overflow => true,
        MapOwner::None => owner.is_none(),
        MapOwner::Root(root) => owner.and_then(|o| o.root).is_some_and(|r| r.0.get() == root),
        MapOwner::Object(id) => owner.is_some_and(|o| o.id.0 == id),
    }
}

/// Whether a page can be what a ruling says.
fn can_be(survey: &Survey<'_>, no: PageNo, ruling: Ruling) -> std::result::Result<(), String> {
    match ruling.role {
        Role::Orphan | Role::FreelistLeaf | Role::Unreadable => Ok(()),
        role if role.is_tree() => {
            if ruling.given == Given::Nobody {
                return Err(format!("{} {} needs an owner, such as root:5", human::article(role.word()), role.word()));
            }
            let tree = survey.trees.iter().find(|t| match ruling.given {
                Given::Root(root) => survey.catalog.get(t.object).and_then(|o| o.root).is_some_and(|r| r.0 == root),
                Given::Object(id) => t.object == id,
                Given::Nobody => false,
            });
            // A leaf that was put together from its bytes was so for the tree that had it.
            let read = if survey.pages.mended(no).is_some() { survey.pages.page(no).ok() } else { survey.pages.leaf(no).ok() };
            match read {
                Some(page) if tree.is_some_and(|t| t.tree.kind != TreeKind::of(page.kind)) => {
                    Err(format!("the owner has no pages of role {}", role.word()))
                }
                Some(page) if Role::of_page(page.kind) == role => Ok(()),
                Some(page) => {
                    let (is, said) = (Role::of_page(page.kind).word(), role.word());
                    Err(format!("page {no} is {} {is}, not {} {said}", human::article(is), human::article(said)))
                }
                None => Err(format!("page {no} does not read as {} {}", human::article(role.word()), role.word())),
            }
        }
        role => Err(format!(
            "page {no} cannot be made a page of role {} by hand; a map can make pages orphan, free, unreadable, or pages of a tree",
            role.word()
        )),
    }
}
