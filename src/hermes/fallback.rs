//! Text that the application wrote beside the store when it could not write into it: `sessions/ID.jsonl`, one message a line,
//! and `pending_messages/pending-*.json`. The shapes are read with care: what is no message is passed over and counted.

use std::path::{Path, PathBuf};

use serde_json::Value as Json;

/// Bytes of one file that are read.
const FILE: u64 = 256 << 20;
/// Files that are read.
const FILES: usize = 100_000;

/// A message of a fallback file.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FallbackMessage {
    /// The session.
    pub(crate) session: String,
    /// The object as it was written.
    pub(crate) fields: serde_json::Map<String, Json>,
}

/// What the fallback files beside a store hold.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Fallback {
    /// Messages in the order of their files and lines.
    pub(crate) messages: Vec<FallbackMessage>,
    /// The files.
    pub(crate) files: Vec<PathBuf>,
    /// Lines that are no message.
    pub(crate) passed_over: u64,
}

fn files(folder: &Path, ending: &str, start: &str) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut out: Vec<PathBuf> = entries.take(FILES).filter_map(|e| Some(e.ok()?.path())).collect();
    let fits = |p: &PathBuf| {
        let name = p.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
        name.starts_with(start) && name.ends_with(ending) && p.is_file()
    };
    out.retain(fits);
    out.sort();
    out
}

fn read(path: &Path) -> Option<String> {
    if std::fs::metadata(path).ok()?.len() > FILE {
        return None;
    }
    Some(String::from_utf8_lossy(&std::fs::read(path).ok()?).into_owned())
}

impl Fallback {
    /// Reads the files beside a store.
    pub(crate) fn beside(db: &Path) -> Fallback {
        let folder = db.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mut out = Fallback::default();
        for path in files(&folder.join("sessions"), ".jsonl", "") {
            let session = path.file_stem().map(|s| s.to_string_lossy().into_owned()).unwrap_or_default();
            let Some(text) = read(&path) else { continue };
            for line in text.lines().filter(|l| !l.trim().is_empty()) {
                match serde_json::from_str(line) {
                    Ok(json) => out.take(&session, json),
                    Err(_) => out.passed_over = out.passed_over.saturating_add(1),
                }
            }
            out.files.push(path);
        }
        for path in files(&folder.join("pending_messages"), ".json", "pending-") {
            match read(&path).and_then(|t| serde_json::from_str(&t).ok()) {
                Some(json) => out.take("", json),
                None => out.passed_over = out.passed_over.saturating_add(1),
            }
            out.files.push(path);
        }
        out
    }

    /// Takes a message, a list of messages, or an object that holds such a list.
    fn take(&mut self, session: &str, json: Json) {
        // A list in a list in a list is nothing that the application writes.
        let mut open = vec![(session.to_owned(), json, 0_u8)];
        while let Some((session, json, depth)) = open.pop() {
            match json {
                Json::Array(items) if depth < 3 => {
                    open.extend(items.into_iter().rev().map(|i| (session.clone(), i, depth.saturating_add(1))));
                }
                Json::Object(mut map) => {
                    let own = map.get("session_id").and_then(Json::as_str).unwrap_or(&session).to_owned();
                    if let Some(list) = map.remove("messages").or_else(|| map.remove("message")).filter(|_| depth < 3) {
                        open.push((own, list, depth.saturating_add(1)));
                    } else if !own.is_empty() && map.get("role").is_some_and(Json::is_string) {
                        self.messages.push(FallbackMessage { session: own, fields: map });
                    } else {
                        self.passed_over = self.passed_over.saturating_add(1);
                    }
                }
                _ => self.passed_over = self.passed_over.saturating_add(1),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_lists_and_envelopes_are_messages_and_the_rest_is_counted() {
        let mut f = Fallback::default();
        f.take("s", serde_json::json!({"role": "user", "content": "a"}));
        f.take("", serde_json::json!({"session_id": "t", "messages": [{"role": "tool", "content": "b"}, 7]}));
        f.take("", serde_json::json!({"role": "user"}));
        assert_eq!(f.messages.iter().map(|m| m.session.as_str()).collect::<Vec<_>>(), ["s", "t"]);
        assert_eq!(f.passed_over, 2);
    }
}
