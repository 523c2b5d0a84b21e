//! The commit that a released binary was made from, for `--version`.
//!
//! It comes from `ROOTPAGE_COMMIT` where a packager sets it, else from the record that `cargo package` leaves, else from git.
//! A development build does not ask git: each commit would cause a build.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-env-changed=ROOTPAGE_COMMIT");
    println!("cargo::rerun-if-changed=build.rs");
    let version = std::env::var("CARGO_PKG_VERSION").unwrap_or_default();
    let version = match commit() {
        Some(commit) => format!("{version} ({commit})"),
        None => version,
    };
    println!("cargo::rustc-env=ROOTPAGE_VERSION={version}");
}

fn commit() -> Option<String> {
    let given = std::env::var("ROOTPAGE_COMMIT").ok();
    given.or_else(packaged).or_else(from_git).as_deref().and_then(short)
}

/// The first twelve digits, when it is a commit's name and nothing else.
fn short(commit: &str) -> Option<String> {
    let commit = commit.trim();
    (commit.len() >= 7 && commit.bytes().all(|b| b.is_ascii_hexdigit())).then(|| commit.chars().take(12).collect())
}

/// `.cargo_vcs_info.json`, which stands in the root of a crate that `cargo package` made.
fn packaged() -> Option<String> {
    let text = std::fs::read_to_string(".cargo_vcs_info.json").ok()?;
    let after = text.split("\"sha1\"").nth(1)?;
    after.split('"').nth(1).map(str::to_owned)
}

fn from_git() -> Option<String> {
    if std::env::var("PROFILE").ok()? != "release" || !Path::new(".git").exists() {
        return None;
    }
    for path in ["HEAD", "logs/HEAD"] {
        if let Some(path) = git(&["rev-parse", "--git-path", path]) {
            println!("cargo::rerun-if-changed={path}");
        }
    }
    git(&["rev-parse", "HEAD"])
}

fn git(args: &[&str]) -> Option<String> {
    let out = Command::new("git").args(args).output().ok()?;
    out.status.success().then(|| String::from_utf8_lossy(&out.stdout).trim().to_owned())
}
