//! The HTML report: size, escapes, and a real browser that drives it (skipped with a message where there is none).

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::report_samples as samples;
use rootpage::report::model::PageMark;
use rootpage::report::{Report, html};

fn browser() -> Option<PathBuf> {
    let found = ["chromium", "chromium-browser", "google-chrome"]
        .iter()
        .find_map(|name| std::env::split_paths(&std::env::var_os("PATH")?).map(|d| d.join(name)).find(|p| p.is_file()));
    if found.is_none() {
        eprintln!("skipped: no chromium on this machine");
    }
    found
}

fn run(browser: &Path, dir: &Path, page: &Path, args: &[&str]) -> String {
    let out = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--virtual-time-budget=20000", "--timeout=60000"])
        .arg(format!("--user-data-dir={}", dir.join("profile").display()))
        .args(args)
        .arg(format!("file://{}", page.display()))
        .output()
        .unwrap();
    String::from_utf8_lossy(&out.stdout).into_owned()
}

/// Loads the page with a script behind it whose last value becomes the text of `<pre id=result>`.
fn drive(report: &Report, script: &str) -> Option<String> {
    let browser = browser()?;
    let dir = tempfile::tempdir().unwrap();
    let page = dir.path().join("r.html");
    let driver = format!(
        "<pre id=result></pre><script>try{{document.getElementById('result').textContent='OK '+(()=>{{{script}}})()}}catch(e){{document.getElementById('result').textContent='FAILED '+e.stack}}</script></body>"
    );
    let text = html::render(report).unwrap().replacen("</body>", &driver, 1);
    std::fs::write(&page, text).unwrap();
    let dom = run(&browser, dir.path(), &page, &["--window-size=1000,800", "--dump-dom"]);
    let result = dom.split("<pre id=\"result\">").nth(1).unwrap_or_else(|| panic!("no result in {dom}"));
    Some(result.split("</pre>").next().unwrap().to_owned())
}

#[test]
fn a_million_pages_stay_under_two_megabytes() {
    let text = html::render(&samples::damaged(1_000_000)).unwrap();
    assert!(text.len() < 2 << 20, "{} bytes", text.len());
    let small = html::render(&samples::damaged(100)).unwrap();
    assert!(small.len() < 40 << 10, "{} bytes", small.len());
}

#[test]
fn nothing_hostile_and_nothing_foreign_is_in_the_page() {
    for report in [samples::recovered(), samples::damaged(100), samples::healthy(), samples::nothing_recoverable()] {
        let text = html::render(&report).unwrap();
        assert_eq!(text.matches("<script").count(), text.matches("</script").count());
        assert!(text.matches("<script").count() <= 2, "a name became markup");
        assert!(!text.contains('\u{1b}') && !text.contains('\u{202e}'));
        for foreign in ["http:", "https:", "src=", "url(", "@import", "fetch(", "XMLHttp"] {
            assert!(!text.contains(foreign), "{foreign}");
        }
        assert_eq!(text, html::render(&report).unwrap());
    }
}

#[test]
fn the_map_tells_what_a_page_is() {
    let script = r"
        const canvas = document.getElementById('map'), r = canvas.getBoundingClientRect(), told = document.getElementById('told');
        canvas.focus();
        const go = document.getElementById('go');
        go.value = 50; go.dispatchEvent(new Event('change'));
        const overruled = told.textContent;
        go.value = 17; go.dispatchEvent(new Event('change'));
        const byNumber = told.textContent;
        canvas.dispatchEvent(new MouseEvent('click', {clientX: r.left + 2, clientY: r.top + 2, bubbles: true}));
        const byTap = told.textContent;
        canvas.dispatchEvent(new PointerEvent('pointermove', {clientX: r.left + 2, clientY: r.top + 2, pointerType: 'mouse'}));
        const byHover = told.textContent;
        canvas.dispatchEvent(new KeyboardEvent('keydown', {key: 'ArrowRight'}));
        const byKey = go.value;
        const pixel = () => canvas.getContext('2d').getImageData(2, 2, 1, 1).data.join();
        const before = pixel();
        document.querySelector('#legend button[data-role=damage]').click();
        const dimmed = pixel();
        const folds = [...document.querySelectorAll('details.object')];
        folds[0].querySelector('summary').click();
        return JSON.stringify({overruled, byNumber, byTap, byHover, byKey, changed: before !== dimmed, folded: !folds[0].open, title: document.title,
            requests: performance.getEntriesByType('resource').length, wide: document.documentElement.scrollWidth > innerWidth});";
    let Some(result) = drive(&samples::damaged(100), script) else { return };
    let json =
        result.strip_prefix("OK ").unwrap_or_else(|| panic!("{result}")).replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
    let v: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(v["byNumber"].as_str().unwrap().split(" · ").count(), 3, "{v}");
    assert!(v["byNumber"].as_str().unwrap().contains(" · damaged · "), "{v}");
    assert!(v["byNumber"].as_str().unwrap().starts_with("table-interior of table messages"), "{v}");
    assert!(v["byTap"].as_str().unwrap().starts_with("table-leaf of table sqlite_schema"), "{v}");
    assert!(v["overruled"].as_str().unwrap().contains("as the given map says"), "{v}");
    assert_eq!(v["byTap"], v["byHover"]);
    assert_eq!(v["byKey"], "2");
    assert_eq!(v["changed"], true);
    assert_eq!(v["folded"], true);
    assert_eq!(v["title"], "state.db - rootpage");
    assert_eq!(v["requests"], 0);
    assert_eq!(v["wide"], false);
}

#[test]
fn a_page_is_told_by_its_codes_when_its_findings_are_not_kept() {
    let mut report = samples::damaged(1000);
    report.findings.iter_mut().for_each(|g| g.kept.clear());
    let mark = |first, count, codes: &[&str]| PageMark { first, count, codes: codes.iter().map(|c| (*c).to_owned()).collect() };
    report.marks = vec![mark(17, 1, &["P001"]), mark(18, 200, &["C003", "I002"]), mark(900, 1, &["P001"])];
    let script = "const go = document.getElementById('go'), told = document.getElementById('told'); \
        return [16, 17, 18, 217, 218, 899, 900, 901].map(n => { go.value = n; go.dispatchEvent(new Event('change')); \
            return told.textContent.split(' · ').filter(w => /^[A-Z][0-9]{3} /.test(w)).join('+'); }).join('|')";
    let Some(result) = drive(&report, script) else { return };
    let (one, two) = ("P001 page-kind-bad", "C003 varint-cut+I002 index-entry-without-row");
    assert_eq!(result, format!("OK |{one}|{two}|{two}|||{one}|"));
}

#[test]
fn however_much_is_lost_the_page_can_be_read() {
    let text = html::render(&samples::vast()).unwrap();
    let next = text.find("<h2>What to do next</h2>").unwrap();
    // What is folded does not count.
    let mut open = String::new();
    for (i, part) in text[..next].split("<details class=\"fold\">").enumerate() {
        open.push_str(if i == 0 { part } else { part.split_once("</details>").unwrap().1 });
    }
    assert!(open.matches("<tr>").count() < 30 && open.matches("<li>").count() < 30, "{open}");
    assert!(text.contains("The first 2,000 of 7,983 more tables"));
    assert!(text.len() < 4 << 20, "{} bytes", text.len());
    assert_eq!(text.matches("<details").count(), text.matches("</details>").count());
}

#[test]
fn hostile_names_and_values_stay_text_in_a_browser() {
    // The value is told by the map, too, where the script of the page puts it.
    let script = "const go = document.getElementById('go'); go.value = 33; go.dispatchEvent(new Event('change')); \
        if (!document.getElementById('told').textContent.includes('<script>document.title')) throw new Error('not told'); return document.title + '|' + document.querySelectorAll('script').length + '|' + document.body.textContent.includes('<script>document.title')";
    let Some(result) = drive(&samples::recovered(), script) else { return };
    // The two scripts of the page and the driver.
    assert_eq!(result, "OK state.db - rootpage|3|true");
}

#[test]
fn a_million_pages_are_drawn_at_once() {
    let script = "return document.documentElement.dataset.drawn + ' ' + document.getElementById('map').width * document.getElementById('map').height";
    let Some(result) = drive(&samples::damaged(1_000_000), script) else { return };
    let (ms, pixels) = result.strip_prefix("OK ").unwrap_or_else(|| panic!("{result}")).split_once(' ').unwrap();
    eprintln!("drawn in {ms} ms");
    assert!(pixels.parse::<u64>().unwrap() >= 1_000_000);
    // Generous: machines differ, but one element a page took 18 s.
    assert!(ms.parse::<u64>().unwrap() < 5_000, "{ms} ms");
}

/// A page that shows the report in a frame as wide as a phone, since a browser without a screen has no window as narrow.
fn phone(report: &Report, height: u32) -> String {
    let text = html::render(report).unwrap().replace('&', "&amp;").replace('"', "&quot;");
    format!(
        "<!doctype html><body style='margin:0'><iframe id=phone width=390 height={height} style='border:0' srcdoc=\"{text}\"></iframe></body>"
    )
}

#[test]
fn a_phone_shows_all_of_it_without_scrolling_sideways() {
    let Some(browser) = browser() else { return };
    for report in [samples::recovered(), samples::damaged(100_000)] {
        let dir = tempfile::tempdir().unwrap();
        let page = dir.path().join("r.html");
        let driver = "<pre id=result></pre><script>onload = () => {
            const d = document.getElementById('phone').contentDocument, c = d.getElementById('map'), r = c.getBoundingClientRect();
            c.dispatchEvent(new MouseEvent('click', {clientX: r.left + 3, clientY: r.top + 3, bubbles: true}));
            document.getElementById('result').textContent =
                [d.documentElement.scrollWidth, r.right <= 390, d.getElementById('told').textContent].join('|');
        }</script></body>";
        let outer = phone(&report, 800);
        let outer = outer.strip_suffix("</body>").unwrap();
        std::fs::write(&page, format!("{outer}{driver}")).unwrap();
        let dom = run(&browser, dir.path(), &page, &["--window-size=500,900", "--dump-dom"]);
        let result = dom.rsplit("<pre id=\"result\">").next().unwrap().split("</pre>").next().unwrap().to_owned();
        let told = result.strip_prefix("390|true|").unwrap_or_else(|| panic!("{result}"));
        assert!(told.contains("-leaf") && !told.contains("Point at"), "{told}");
    }
}

/// `SHOTS=DIR cargo test --test html_report shots` writes screenshots to look at.
#[test]
fn shots() {
    let Some(to) = std::env::var_os("SHOTS").map(PathBuf::from) else { return };
    let Some(browser) = browser() else { return };
    let dir = tempfile::tempdir().unwrap();
    for (name, report) in [
        ("recovered", samples::recovered()),
        ("100", samples::damaged(100)),
        ("100000", samples::damaged(100_000)),
        ("1000000", samples::damaged(1_000_000)),
        ("healthy", samples::healthy()),
    ] {
        let page = to.join(format!("{name}.html"));
        std::fs::write(&page, html::render(&report).unwrap()).unwrap();
        for (mode, args) in [
            ("light", vec!["--window-size=1000,2200"]),
            ("dark", vec!["--window-size=1000,2200", "--blink-settings=preferredColorScheme=0"]),
        ] {
            let shot = format!("--screenshot={}", to.join(format!("{name}-{mode}.png")).display());
            run(&browser, dir.path(), &page, &[args, vec![&shot]].concat());
        }
        let small = to.join(format!("{name}-phone.html"));
        std::fs::write(&small, phone(&report, 2600)).unwrap();
        run(
            &browser,
            dir.path(),
            &small,
            &["--window-size=500,2600", &format!("--screenshot={}", to.join(format!("{name}-phone.png")).display())],
        );
        let pdf = format!("--print-to-pdf={}", to.join(format!("{name}.pdf")).display());
        run(&browser, dir.path(), &page, &[&pdf]);
    }
}
