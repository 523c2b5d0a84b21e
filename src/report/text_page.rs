//! One page explained, as text.
#![expect(clippy::arithmetic_side_effects, reason = "offsets of lines that this module made itself")]

use std::fmt::Write as _;

use super::human::{count, escape, name, passage, wrap};
use super::page::PageView;
use super::text::Style;

/// The page as text; `hex` adds its bytes.
#[must_use]
pub fn render(view: &PageView, style: &Style, hex: bool) -> String {
    let mut out = String::new();
    let _ = write!(out, "Page {} of {}: {}", count(view.page.into()), count(view.page_count), escape(&view.role));
    if let Some(owner) = &view.owner {
        let _ = write!(out, " of {}", name(owner));
    }
    out.push('\n');
    let _ = writeln!(out, "Read from {}, byte {}", escape(&view.origin), view.file_offset);
    if let Some(parent) = view.parent {
        let _ = writeln!(out, "Its parent is page {parent}");
    }
    if !view.versions.is_empty() {
        let _ = writeln!(out, "Other versions of it: {}", escape(&view.versions.join(", ")));
    }
    for finding in &view.findings {
        let cell = finding.cell.map(|c| format!("cell {c}: ")).unwrap_or_default();
        for (i, line) in wrap(&format!("{cell}{}", passage(&finding.sentence)), style.width.saturating_sub(2)).iter().enumerate() {
            let _ = writeln!(out, "{}{line}", if i == 0 { "! " } else { "  " });
        }
    }
    if !view.fields.is_empty() {
        out.push_str("\nHeader\n");
        let width = view.fields.iter().map(|f| f.name.chars().count()).max().unwrap_or(0);
        for f in &view.fields {
            let _ = writeln!(out, "  {:>5}  {:width$}  {}", f.offset, escape(&f.name), escape(&f.value));
        }
    }
    if !view.cells.is_empty() {
        let _ = writeln!(out, "\nCells ({})", view.cells.len());
        for c in &view.cells {
            let mut head = format!("  {:>4}  at {:>5}, {:>5} bytes", c.no, c.offset, c.length);
            for (name, value) in [
                ("child", c.child.map(|n| n.to_string())),
                ("rowid", c.rowid.map(|n| n.to_string())),
                ("payload", c.payload.map(|n| n.to_string())),
                ("overflow page", c.overflow.map(|n| n.to_string())),
            ] {
                if let Some(value) = value {
                    let _ = write!(head, ", {name} {value}");
                }
            }
            out.push_str(&head);
            out.push('\n');
            if !c.values.is_empty() {
                let values: Vec<String> = c.values.iter().map(|v| escape(v)).collect();
                for line in wrap(&values.join(", "), style.width.saturating_sub(8)) {
                    let _ = writeln!(out, "        {line}");
                }
            }
            if let Some(defect) = &c.defect {
                let _ = writeln!(out, "      ! {}", passage(defect));
            }
        }
    }
    if !view.freeblocks.is_empty() {
        out.push_str("\nFree ranges\n");
        for [at, len] in &view.freeblocks {
            let _ = writeln!(out, "  {at:>5}  {len} bytes");
        }
    }
    if hex && !view.hex.is_empty() {
        out.push_str("\nBytes\n");
        dump(&mut out, &view.hex);
    }
    out
}

/// 16 bytes a line with offset and printable ASCII; runs of equal lines are folded into one `*`.
fn dump(out: &mut String, hex: &str) {
    let bytes: Vec<u8> = hex
        .as_bytes()
        .chunks_exact(2)
        .map(|p| std::str::from_utf8(p).ok().and_then(|p| u8::from_str_radix(p, 16).ok()).unwrap_or(0))
        .collect();
    let mut last: &[u8] = &[];
    let mut folded = false;
    for (i, chunk) in bytes.chunks(16).enumerate() {
        if chunk == last && chunk.len() == 16 {
            if !folded {
                out.push_str("      *\n");
            }
            folded = true;
            continue;
        }
        (last, folded) = (chunk, false);
        let _ = write!(out, "  {:>5} ", i * 16);
        for byte in chunk {
            let _ = write!(out, " {byte:02x}");
        }
        out.push_str(&"   ".repeat(16 - chunk.len()));
        out.push_str("  ");
        out.extend(chunk.iter().map(|&b| if b.is_ascii_graphic() || b == b' ' { char::from(b) } else { '.' }));
        out.push('\n');
    }
}
