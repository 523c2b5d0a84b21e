//! The text that older stores keep a second time: each row of `messages_fts_content` is content, tool name and tool calls of a
//! message with one space between them.

/// Content, tool name and tool calls of a copy. What stands between cannot always be told from a space of the content: a
/// message without tools ends in both separators, one of a tool in its name, one with calls in a JSON list.
pub(crate) fn split(copy: &[u8]) -> (Vec<u8>, Option<Vec<u8>>, Option<Vec<u8>>) {
    if let Some(content) = copy.strip_suffix(b"  ") {
        return (content.to_vec(), None, None);
    }
    if let Some(rest) = copy.strip_suffix(b" ")
        && let Some(at) = rest.iter().rposition(|b| *b == b' ')
        && let (Some(content), Some(name)) = (rest.get(..at), rest.get(at.saturating_add(1)..))
        && !name.is_empty()
    {
        return (content.to_vec(), Some(name.to_vec()), None);
    }
    if copy.ends_with(b"]") {
        let starts = copy.windows(2).enumerate().filter(|(_, w)| w == b" [").map(|(i, _)| i);
        for at in starts.take(1000) {
            let (Some(before), Some(calls)) = (copy.get(..at), copy.get(at.saturating_add(1)..)) else { continue };
            if !serde_json::from_slice::<serde_json::Value>(calls).is_ok_and(|v| v.is_array()) {
                continue;
            }
            let Some(space) = before.iter().rposition(|b| *b == b' ') else { continue };
            let (Some(content), Some(name)) = (before.get(..space), before.get(space.saturating_add(1)..)) else { continue };
            return (content.to_vec(), (!name.is_empty()).then(|| name.to_vec()), Some(calls.to_vec()));
        }
    }
    (copy.to_vec(), None, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_message_comes_apart_again() {
        let joined = |c: &str, n: &str, t: &str| format!("{c} {n} {t}").into_bytes();
        for (c, n, t) in [
            ("hello world", "", ""),
            ("", "", ""),
            ("ends in a space ", "", ""),
            ("output [1, 2]", "terminal", ""),
            ("I will look", "", r#"[{"function":{"name":"x","arguments":"{}"}}]"#),
            ("", "", r#"[{"a":[1, 2]}]"#),
        ] {
            let (content, name, calls) = split(&joined(c, n, t));
            assert_eq!(content, c.as_bytes(), "{c:?} {n:?} {t:?}");
            assert_eq!(name.unwrap_or_default(), n.as_bytes());
            assert_eq!(calls.unwrap_or_default(), t.as_bytes());
        }
    }
}
