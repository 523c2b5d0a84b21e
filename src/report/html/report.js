'use strict';
(() => {
const opened = [];
addEventListener('beforeprint', () => { for (const d of document.querySelectorAll('details:not([open])')) { d.open = true; opened.push(d); } });
addEventListener('afterprint', () => { for (const d of opened.splice(0)) d.open = false; });
const canvas = document.getElementById('map');
if (!canvas) return;
const t0 = performance.now();
const data = JSON.parse(document.getElementById('data').textContent);
const n = data.pages, combos = data.combos;
// Runs: [palette entry, count], entries by move-to-front, numbers as groups of five bits, bit 32 = more follow.
const starts = [], kinds = [];
const reader = text => {
  let at = 0;
  const number = () => {
    let value = 0, shift = 0;
    for (;;) {
      const c = text.charCodeAt(at++) - 48;
      value += (c & 31) * 2 ** shift;
      if (c < 32) return value;
      shift += 5;
    }
  };
  return { number, more: () => at < text.length };
};
{
  const runs = reader(data.runs), order = combos.map((_, i) => i);
  let page = 1;
  while (runs.more()) {
    const head = runs.number(), rank = Math.floor(head / 2);
    const count = head % 2 ? runs.number() : 1;
    const kind = order[rank];
    if (rank) { order.splice(rank, 1); order.unshift(kind); }
    starts.push(page); kinds.push(kind);
    page += count;
  }
  starts.push(n + 1);
}
// Pages that findings name: first page, page behind the last, place of their codes.
const marked = [];
{
  const marks = reader(data.marks);
  let page = 1;
  while (marks.more()) {
    const first = page + marks.number(), end = first + marks.number();
    marked.push([first, end, marks.number()]);
    page = end;
  }
}
const codesOf = page => {
  let lo = 0, hi = marked.length;
  while (lo < hi) { const mid = (lo + hi) >> 1; if (marked[mid][1] <= page) lo = mid + 1; else hi = mid; }
  return lo < marked.length && marked[lo][0] <= page ? data.codes[marked[lo][2]] : '';
};
const run = page => {
  let lo = 0, hi = starts.length - 1;
  while (hi - lo > 1) { const mid = (lo + hi) >> 1; if (starts[mid] <= page) lo = mid; else hi = mid; }
  return lo;
};
let cols = 1, rows = 1, cell = 1, per = 1, picked = 0, only = null;
const rgba = css => { const v = parseInt(css.trim().slice(1), 16); return 0xff000000 | (v & 255) << 16 | (v & 0xff00) | v >> 16; };
// The bar of a page: what covers it when several pages share one cell; damage wins.
function draw() {
  const style = getComputedStyle(document.documentElement);
  const get = name => style.getPropertyValue(name);
  const width = Math.max(120, canvas.parentElement.clientWidth), dpr = Math.min(devicePixelRatio || 1, 3);
  const w = Math.floor(width * dpr);
  // As large as fits 520 lines of the page; never under one device pixel; beyond 9000 rows several pages share a cell.
  cell = Math.max(1, Math.min(Math.round(22 * dpr), Math.floor(Math.sqrt(w * 520 * dpr / n))));
  cols = Math.max(1, Math.floor(w / cell));
  per = Math.max(1, Math.ceil(n / (cols * 9000)));
  rows = Math.ceil(Math.ceil(n / per) / cols);
  const bg = rgba(get('--bg')), bad = rgba(get('--bad'));
  const mix = c => { let out = 0xff000000; for (const s of [0, 8, 16]) out |= Math.round(((c >> s & 255) * 16 + (bg >> s & 255) * 84) / 100) << s; return out >>> 0; };
  const roles = data.roles.map((_, i) => rgba(get('--r' + i)));
  const colours = combos.map(c => {
    const colour = c[3] ? bad : roles[c[0]];
    const dim = only !== null && !(only === 'damage' ? c[3] : c[0] === +only);
    return (dim ? mix(colour) : colour) >>> 0;
  });
  const pixels = new Uint32Array(cols * rows).fill(bg >>> 0);
  const halos = [];
  for (let i = 0; i < kinds.length; i++) {
    const from = Math.floor((starts[i] - 1) / per), to = Math.floor((starts[i + 1] - 2) / per) + 1, damaged = combos[kinds[i]][3];
    if (damaged && halos.length < 4000) halos.push(from);
    if (per === 1 || damaged) pixels.fill(colours[kinds[i]], from, to);
    else for (let p = from; p < to; p++) if (pixels[p] !== bad >>> 0) pixels[p] = colours[kinds[i]];
  }
  canvas.width = cols * cell; canvas.height = rows * cell;
  canvas.style.width = cols * cell / dpr + 'px'; canvas.style.height = rows * cell / dpr + 'px';
  const g = canvas.getContext('2d');
  const image = new ImageData(new Uint8ClampedArray(pixels.buffer), cols, rows);
  if (cell === 1) g.putImageData(image, 0, 0);
  else {
    const small = document.createElement('canvas');
    small.width = cols; small.height = rows;
    small.getContext('2d').putImageData(image, 0, 0);
    g.imageSmoothingEnabled = false;
    g.drawImage(small, 0, 0, cols * cell, rows * cell);
    if (cell >= 4) {
      const gap = Math.max(1, Math.round(cell / 12));
      g.fillStyle = get('--bg');
      for (let x = 1; x <= cols; x++) g.fillRect(x * cell - gap, 0, gap, rows * cell);
      for (let y = 1; y <= rows; y++) g.fillRect(0, y * cell - gap, cols * cell, gap);
    }
  }
  if (cell >= 10) {
    // Damage is told by shape, too: a cross.
    g.strokeStyle = get('--bg'); g.lineWidth = Math.max(1, cell / 10); g.beginPath();
    for (let i = 0; i < kinds.length; i++) if (combos[kinds[i]][3]) for (let p = starts[i] - 1; p < starts[i + 1] - 1; p++) {
      const x = p % cols * cell, y = Math.floor(p / cols) * cell, a = cell * .28, b = cell * .64;
      g.moveTo(x + a, y + a); g.lineTo(x + b, y + b); g.moveTo(x + b, y + a); g.lineTo(x + a, y + b);
    }
    g.stroke();
  } else if (halos.length <= 400) {
    // A single pixel would be missed: a ring around it.
    g.strokeStyle = get('--bad'); g.lineWidth = 1.5 * dpr;
    const r = Math.max(cell, 5 * dpr), inside = (x, end) => Math.max(r + dpr, Math.min(end - r - dpr, x));
    for (const p of halos) {
      g.beginPath();
      g.arc(inside((p % cols + .5) * cell, canvas.width), inside((Math.floor(p / cols) + .5) * cell, canvas.height), r, 0, 7);
      g.stroke();
    }
  }
  if (picked) {
    const p = Math.floor((picked - 1) / per), e = Math.max(cell, 5);
    g.strokeStyle = get('--mark'); g.lineWidth = Math.max(1, dpr);
    g.strokeRect(p % cols * cell - (e - cell) / 2 - .5, Math.floor(p / cols) * cell - (e - cell) / 2 - .5, e, e);
  }
}
const told = document.getElementById('told'), go = document.getElementById('go');
function tell(page) {
  const i = run(page), [role, owner, origin, damaged, overruled] = combos[kinds[i]];
  let text = data.roles[role];
  if (owner >= 0) text += ' of ' + data.owners[owner];
  if (data.origins[origin] !== 'main') text += ', from ' + data.origins[origin];
  const last = starts[i + 1] - 1;
  if (last > starts[i]) text += ' (one of pages ' + starts[i].toLocaleString('en') + ' to ' + last.toLocaleString('en') + ')';
  if (overruled) text += ' · as the given map says';
  const found = data.findings[page] || [], codes = codesOf(page).split(' · ').filter(c => c && !found.some(f => f.startsWith(c.slice(0, 4))));
  if (damaged) text += ' · damaged';
  for (const words of found.concat(codes)) text += ' · ' + words;
  told.textContent = text;
  go.value = page;
}
function pick(page) { picked = Math.max(1, Math.min(n, page || 1)); tell(picked); draw(); }
function at(e) {
  const r = canvas.getBoundingClientRect();
  const x = Math.floor((e.clientX - r.left) / r.width * cols), y = Math.floor((e.clientY - r.top) / r.height * rows);
  const page = (y * cols + x) * per + 1;
  return x >= 0 && x < cols && y >= 0 && page <= n ? page : 0;
}
canvas.addEventListener('pointermove', e => { const p = at(e); if (p && e.pointerType === 'mouse') tell(p); });
canvas.addEventListener('pointerleave', () => { if (picked) tell(picked); });
canvas.addEventListener('click', e => { const p = at(e); if (p) pick(p); });
canvas.addEventListener('keydown', e => {
  const step = { ArrowRight: per, ArrowLeft: -per, ArrowDown: cols * per, ArrowUp: -cols * per }[e.key];
  if (step) { e.preventDefault(); pick((picked || 1) + step); }
});
go.addEventListener('change', () => pick(Math.floor(+go.value)));
for (const a of document.querySelectorAll('a[data-page]')) a.addEventListener('click', () => pick(+a.dataset.page));
document.getElementById('legend').addEventListener('click', e => {
  const b = e.target.closest('button');
  if (!b) return;
  only = only === b.dataset.role ? null : b.dataset.role;
  for (const other of document.querySelectorAll('#legend button')) other.setAttribute('aria-pressed', String(other.dataset.role === only));
  draw();
});
let pending = 0;
const later = () => { cancelAnimationFrame(pending); pending = requestAnimationFrame(draw); };
addEventListener('resize', later);
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', later);
matchMedia('print').addEventListener('change', draw);
draw();
document.documentElement.dataset.drawn = Math.round(performance.now() - t0);
})();
