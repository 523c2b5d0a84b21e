//! Which stores a person means: paths, a data directory with its profiles, one profile by name.

use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// A store and the profile that it belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StorePath {
    /// The profile: "default", the name of its folder, or the name of a file that lies elsewhere.
    pub profile: String,
    /// The database.
    pub path: PathBuf,
}

/// Profiles of one data directory that are looked at: more are none that a person made.
const PROFILES: usize = 10_000;

/// The stores that the arguments name. A folder stands for the `state.db` in it; `home` for that of the default profile and
/// all of `profiles/`; `profile` for one of them. With `profile` alone the data directory is `$HERMES_HOME` or `~/.hermes`.
///
/// # Errors
/// `Usage` when nothing is named, or a profile does not exist; I/O on the data directory.
pub fn stores(paths: &[PathBuf], home: Option<&Path>, profile: Option<&str>) -> Result<Vec<StorePath>> {
    let mut out: Vec<StorePath> = paths.iter().map(|p| of_path(p)).collect();
    if home.is_some() || profile.is_some() {
        let home = home
            .map(Path::to_path_buf)
            .or_else(usual_home)
            .ok_or_else(|| Error::Usage { what: "no data directory is known; name it with --home DIR".to_owned() })?;
        out.extend(of_home(&home, profile)?);
    }
    if out.is_empty() {
        return Err(Error::Usage { what: "name a store, or a data directory with --home DIR".to_owned() });
    }
    Ok(out)
}

fn usual_home() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    set("HERMES_HOME").or_else(|| set("HOME").map(|h| h.join(".hermes"))).or_else(|| set("LOCALAPPDATA").map(|h| h.join("hermes")))
}

fn of_path(path: &Path) -> StorePath {
    let path = if path.is_dir() { path.join("state.db") } else { path.to_path_buf() };
    StorePath { profile: profile_of(&path), path }
}

/// The profile that a path says.
fn profile_of(path: &Path) -> String {
    let name = |p: Option<&Path>| p.and_then(Path::file_name).map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    let folder = path.parent();
    if name(folder.and_then(Path::parent)) == "profiles" {
        return name(folder);
    }
    match name(Some(path)) {
        file if file == "state.db" => "default".to_owned(),
        file => file,
    }
}

fn of_home(home: &Path, profile: Option<&str>) -> Result<Vec<StorePath>> {
    let default = StorePath { profile: "default".to_owned(), path: home.join("state.db") };
    match profile {
        Some("default") => return Ok(vec![default]),
        Some(name) => {
            let plain = Path::new(name).components().count() == 1 && !name.starts_with('.') && !name.contains(['/', '\\']);
            let path = home.join("profiles").join(name).join("state.db");
            if !plain || !path.exists() {
                let what = format!("no profile {name:?} below {}; see its folder profiles", home.display());
                return Err(Error::Usage { what });
            }
            return Ok(vec![StorePath { profile: name.to_owned(), path }]);
        }
        None => {}
    }
    let mut out = Vec::new();
    if default.path.exists() {
        out.push(default);
    }
    let folder = home.join("profiles");
    if folder.is_dir() {
        let entries = std::fs::read_dir(&folder).map_err(|e| Error::io(&folder, "read", e))?;
        let mut names: Vec<PathBuf> = entries.take(PROFILES).filter_map(|e| Some(e.ok()?.path().join("state.db"))).collect();
        names.sort();
        out.extend(names.into_iter().filter(|p| p.exists()).map(|path| StorePath { profile: profile_of(&path), path }));
    }
    if out.is_empty() {
        return Err(Error::Usage { what: format!("no state.db in {} or its folder profiles", home.display()) });
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_says_its_profile() {
        for (path, profile) in
            [("/x/.hermes/state.db", "default"), ("/x/.hermes/profiles/work/state.db", "work"), ("incident-17.db", "incident-17.db")]
        {
            assert_eq!(profile_of(Path::new(path)), profile);
        }
        for bad in ["../x", "a/b", ".hidden", ""] {
            assert!(of_home(Path::new("/nowhere"), Some(bad)).is_err(), "{bad}");
        }
    }
}
