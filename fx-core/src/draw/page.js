const WIDE = 740, NARROW = 620, BOX = 38, PORT = 20, LABEL = 15, HEAD = 30, MARGIN = 14, ROW_GAP = 34, MOST = 1500;
const $ = (s) => document.querySelector(s);
const view = $('#view'), aside = $('aside'), box = $('input');
const NS = 'http://www.w3.org/2000/svg';
const S = D.strings, G = D.groups, N = D.nodes.name.length;
const el = (name, attributes, text) => {
  const e = document.createElementNS(NS, name);
  for (const k in attributes) e.setAttribute(k, attributes[k]);
  if (text !== undefined) e.textContent = text;
  return e;
};
const tag = (name, text, attributes) => {
  const e = document.createElement(name);
  if (text !== undefined) e.textContent = text;
  for (const k in attributes || {}) e.setAttribute(k, attributes[k]);
  return e;
};

// Texts and sizes: as in `geometry.rs`.
const cut = (t) => {
  const c = [...t];
  return c.length <= 34 ? t : c.slice(0, 17).join('') + '…' + c.slice(c.length - 16).join('');
};
const width = (t, c) => {
  let cells = 0;
  for (const ch of t) cells += ch.codePointAt(0) < 128 ? 1 : 2;
  return Math.floor(cells * c / 100) + 1;
};
const count = (n, what) => n + ' ' + what + (n === 1 ? '' : 's');
const name = (i) => D.nodes.name[i];
const called = (i) => S[D.nodes.called[i]];
const shape = (i) => S[D.nodes.shape[i]];
const line = (i) => S[D.nodes.file[i]] ? S[D.nodes.file[i]] + ':' + D.nodes.line[i] : '';
const groupTexts = (g) => [cut('▸ ' + g.title), cut((g.type ? g.type + ', ' : '') + count(g.nodes, 'node'))];
const extent = (name, called, label) => {
  const half = Math.floor((Math.max(width(name, WIDE), width(called, NARROW)) + 20) / 2);
  return { l: half, r: Math.max(half, label ? width(label, NARROW) + 8 : 0), h: BOX + (label ? LABEL : 0) };
};
const port = (text) => { const half = Math.floor((width(text, NARROW) + 16) / 2); return { l: half, r: half, h: PORT }; };

// A group's slots, read when it is first shown. A slot's kind: 0 node, 1 group, 2 input, 3 output, 4 and 5 many, 6 bend.
const inputs = (() => {
  const at = [0], flat = D.nodes.inputs;
  for (let i = 0, k = 0; i < N; i++) at.push(k += 1 + flat[k]);
  return (i) => { const r = []; for (let k = at[i] + 1; k < at[i + 1]; k++) r.push(i - flat[k]); return r; };
})();
let users;
const usersOf = (i) => {
  if (!users) { users = Array.from({ length: N }, () => []); for (let j = 0; j < N; j++) for (const k of inputs(j)) users[k].push(j); }
  return users[i];
};
const parent = new Int32Array(G.length).fill(-1), home = new Int32Array(N).fill(0), opens = new Int32Array(N).fill(-1);
G.forEach((g, at) => {
  for (let i = 0; i < g.slots.length; i += 3) {
    if (g.slots[i] === 0) home[g.slots[i + 1]] = at;
    if (g.slots[i] === 1) parent[g.slots[i + 1]] = at;
  }
  if (g.caller >= 0) opens[g.caller] = at;
});
G.forEach((g, at) => { if (g.caller >= 0) home[g.caller] = parent[at]; });
const closed = (g, kind, ref) => {
  if (kind === 0) return extent(cut(name(ref)), cut(called(ref)), cut(shape(ref)));
  if (kind === 1) { const [a, b] = groupTexts(G[ref]); return extent(a, b, G[ref].caller >= 0 ? cut(shape(G[ref].caller)) : ''); }
  if (kind === 2 || kind === 3) return port(cut(name(ref)));
  if (kind === 6) return { l: 4, r: 4, h: 0 };
  return port(count(ref, 'value'));
};
const read = (g) => {
  if (g.read) return g.read;
  const slots = [];
  let row = 0, left = g.rows[0];
  for (let i = 0; i < g.slots.length; i += 3) {
    while (left === 0) left = g.rows[++row];
    left--;
    const [kind, ref, x] = [g.slots[i], g.slots[i + 1], g.slots[i + 2]];
    slots.push({ kind, ref, x, row, closed: closed(g, kind, ref) });
  }
  const lines = [];
  for (let i = 0; i < g.lines.length; i += 1 + g.lines[i]) lines.push(g.lines.slice(i + 1, i + 1 + g.lines[i]));
  return g.read = { slots, lines };
};

// Where the slots of an open group are: as `placed` in `geometry.rs`.
const open = new Set([0]);
const place = (at) => {
  const g = G[at], { slots } = read(g);
  const p = { x: [], e: [], rows: [], inner: [] };
  let top = HEAD, left = Infinity, right = -Infinity;
  for (let i = 0; i < slots.length;) {
    let end = i;
    while (end < slots.length && slots[end].row === slots[i].row) end++;
    let shift = 0, ofGrown = 0, grown = 0, height = 0;
    for (let s = i; s < end; s++) {
      const { kind, ref, closed } = slots[s];
      let now = closed;
      if (kind === 1 && open.has(ref)) {
        const inner = p.inner[s] = place(ref), half = Math.floor(inner.w / 2);
        now = { l: half, r: Math.max(inner.w - half, closed.r), h: inner.h + (closed.h > BOX ? LABEL : 0) };
      }
      shift += now.l - closed.l;
      p.x[s] = slots[s].x + shift;
      if (now !== closed) { ofGrown += shift; grown++; }
      shift += now.r - closed.r;
      p.e[s] = now;
      height = Math.max(height, now.h);
    }
    const back = Math.trunc(ofGrown / Math.max(grown, 1));
    for (let s = i; s < end; s++) {
      p.x[s] -= back;
      left = Math.min(left, p.x[s] - p.e[s].l);
      right = Math.max(right, p.x[s] + p.e[s].r);
    }
    p.rows.push([top, height]);
    top += height + ROW_GAP;
    i = end;
  }
  if (!slots.length) { left = right = 0; top += ROW_GAP; }
  p.x = p.x.map((x) => x + MARGIN - left);
  p.w = right - left + 2 * MARGIN;
  p.h = top - ROW_GAP + MARGIN;
  return p;
};

// Drawing.
let chosen = null, colors = 0, root, camera = null, boxes = new Map();
const colorOf = (kind, ref) => { const c = D.colors[colors]; return kind === 0 ? c.items[ref] : c.groups[ref] || 0; };
const unit = (into, kind, ref, x, y, e) => {
  const u = el('g', { class: 'u', 'data-k': kind, 'data-r': ref });
  const texts = kind === 0 ? [cut(name(ref)), cut(called(ref))] : groupTexts(G[ref]);
  const tip = kind === 0 ? name(ref) + '  ' + called(ref) + '\n' + line(ref) : G[ref].path + ' ' + G[ref].type;
  u.append(el('title', {}, tip));
  const rect = el('rect', { class: 'b c' + colors + '_' + colorOf(kind, ref), x: x - e.l, y, width: 2 * e.l, height: BOX });
  u.append(rect, el('text', { 'text-anchor': 'middle', x, y: y + 16 }, texts[0]), el('text', { class: 's', 'text-anchor': 'middle', x, y: y + 30 }, texts[1]));
  boxes.set(kind + ',' + ref, rect);
  into.append(u);
};
const put = (into, at, p, x0, y0) => {
  const g = G[at], { slots, lines } = read(g);
  for (const l of lines) {
    const X = (s) => x0 + p.x[s], row = (s) => p.rows[slots[s].row];
    const first = slots[l[0]], label = first.kind < 2 && first.closed.h > BOX;
    let from = X(l[0]), bottom = y0 + row(l[0])[0] + row(l[0])[1];
    let d = 'M' + from + ' ' + (y0 + row(l[0])[0] + p.e[l[0]].h - (label ? LABEL : 0)) + 'V' + bottom;
    for (const s of l.slice(1)) {
      const to = X(s), end = y0 + row(s)[0], middle = (bottom + end) / 2;
      d += 'C' + from + ' ' + middle + ' ' + to + ' ' + middle + ' ' + to + ' ' + end;
      bottom = end + row(s)[1];
      if (slots[s].kind === 6) d += 'V' + bottom;
      from = to;
    }
    into.append(el('path', { d, 'marker-end': 'url(#a)' }));
  }
  const far = new Set();
  for (let i = 0; i < g.refs.length; i += 2) far.add(g.refs[i]);
  slots.forEach((slot, s) => {
    const { kind, ref } = slot, x = x0 + p.x[s], y = y0 + p.rows[slot.row][0], e = p.e[s];
    let bottom = y + BOX;
    if (kind >= 2 && kind <= 5) {
      into.append(el('rect', { class: 'p', x: x - e.l, y, width: e.l + e.r, height: PORT, rx: 10 }),
        el('text', { class: 's', 'text-anchor': 'middle', x, y: y + 14 }, kind < 4 ? cut(name(ref)) : count(ref, 'value')));
    } else if (kind === 1 && p.inner[s]) {
      const inner = p.inner[s];
      bottom = y + inner.h;
      const rect = el('rect', { class: 'g', x: x - e.l, y, width: inner.w, height: inner.h });
      boxes.set('1,' + ref, rect);
      const head = el('g', { class: 'h', 'data-k': 1, 'data-r': ref });
      head.append(el('title', {}, G[ref].path + ' ' + G[ref].type), rect, el('text', { x: x - e.l + 10, y: y + 18 }, '▾ ' + headText(G[ref], inner.w)));
      into.append(head);
      put(into, ref, inner, x - e.l, y);
    } else if (kind < 2) {
      unit(into, kind, ref, x, y, e);
      if (far.has(s)) into.append(el('circle', { cx: x - e.l + 7, cy: y + 7, r: 2.5 }));
    }
    if (kind < 2 && slot.closed.h > BOX) into.append(el('text', { class: 's', x: x + 5, y: bottom + 11 }, cut(shape(kind === 0 ? ref : G[ref].caller))));
  });
};
const headText = (g, w) => {
  const c = [...g.title], fits = Math.max(1, Math.floor((w - 40) * 100 / WIDE));
  return c.length <= fits ? g.title : c.slice(0, fits - 1).join('') + '…';
};
const draw = () => {
  const start = performance.now();
  boxes = new Map();
  const p = place(0);
  const svg = el('svg', { role: 'img' });
  const defs = el('defs'), marker = el('marker', { id: 'a', viewBox: '0 0 8 8', refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: 'auto' });
  marker.append(el('path', { d: 'M0 0L8 4L0 8z', class: 'a' }));
  defs.append(marker);
  root = el('g');
  put(root, 0, p, 0, 0);
  svg.append(defs, root);
  view.querySelector('svg')?.remove();
  view.append(svg);
  root.page = p;
  if (!camera) fit(); else move();
  mark();
  document.body.dataset.drawn = performance.now() - start;
};
const move = () => root.setAttribute('transform', `translate(${camera.x} ${camera.y}) scale(${camera.k})`);
const fit = () => {
  const p = root.page, w = view.clientWidth, h = view.clientHeight;
  const k = Math.min(1.2, Math.max(.08, Math.min(w / p.w, Math.max(h / p.h, .7))));
  camera = { k, x: (w - p.w * k) / 2, y: 8 };
  move();
};
const zoom = (by, x, y) => {
  const k = Math.min(4, Math.max(.03, camera.k * by));
  camera = { k, x: x - (x - camera.x) * k / camera.k, y: y - (y - camera.y) * k / camera.k };
  move();
};
const centre = (key) => {
  const r = boxes.get(key);
  if (!r) return;
  const b = r.getBBox();
  camera = { k: Math.max(camera.k, .6), x: 0, y: 0 };
  camera.x = view.clientWidth / 2 - (b.x + b.width / 2) * camera.k;
  camera.y = view.clientHeight / 3 - b.y * camera.k;
  move();
};
const mark = () => {
  for (const e of root.querySelectorAll('.on')) e.classList.remove('on');
  if (chosen) boxes.get(chosen)?.classList.add('on');
};

// What is chosen.
const around = (g) => { const r = []; for (; g >= 0; g = parent[g]) r.unshift(g); return r; };
const reveal = (kind, ref) => {
  let g = kind === 0 ? home[ref] : parent[ref];
  if (kind === 0 && opens[ref] >= 0) [kind, ref] = [1, opens[ref]];
  let changed = false;
  for (const a of around(g)) if (!open.has(a)) { open.add(a); changed = true; }
  chosen = kind + ',' + ref;
  if (changed) draw(); else mark();
  centre(chosen);
  show(kind, ref);
};
const args = (i) => {
  const taken = inputs(i);
  let k = 0;
  const order = D.nodes.order[i] || null;
  return S[D.nodes.args[i]].replace(/\u0001/g, () => '%' + name(taken[order ? order[k++] : k++]));
};
const link = (i, text) => { const a = tag('a', text || '%' + name(i)); a.onclick = () => reveal(0, i); return a; };
const show = (kind, ref) => {
  aside.replaceChildren();
  const dl = tag('dl');
  const field = (title, value) => { if (value === '' || value === undefined) return; dl.append(tag('dt', title)); const d = tag('dd'); d.append(value); dl.append(d); };
  const i = kind === 0 ? ref : G[ref].caller;
  aside.append(tag('h2', kind === 0 ? '%' + name(ref) : G[ref].title), dl);
  if (kind === 1) { field('module', G[ref].path + ' ' + G[ref].type); field('nodes', String(G[ref].nodes)); }
  if (i >= 0) {
    field('operation', S[D.nodes.target[i]]);
    field('arguments', args(i));
    field('value', shape(i));
    field('written at', line(i));
    field('path', around(home[i]).map((g) => G[g].title).join(' › '));
    for (const c of D.columns) { const v = c.values[i]; if (v !== null && v !== undefined) field(c.title, v.toLocaleString() + ' ' + c.unit); }
    const list = (of) => { const s = tag('span'); of.slice(0, 60).forEach((j, n) => s.append(n ? ', ' : '', link(j))); return s; };
    if (inputs(i).length) field('uses', list(inputs(i)));
    if (usersOf(i).length) field('used by', list(usersOf(i)));
    if (D.notes[i]) { dl.append(tag('dt', 'history')); dl.append(tag('pre', D.notes[i])); }
    if (kind === 0) history.replaceState(null, '', '#node=' + encodeURIComponent(name(i)));
  }
  if (kind === 1) for (const [n, c] of D.columns.entries()) if (c.totals[ref]) field(c.title, c.totals[ref].toLocaleString() + ' ' + c.unit + ' (' + (100 * c.totals[ref] / c.totals[0]).toFixed(1) + ' %)');
};
const choose = (kind, ref) => {
  chosen = kind + ',' + ref;
  if (kind === 1) toggle(ref); else mark();
  show(kind, ref);
};
const toggle = (g) => {
  if (open.has(g)) open.delete(g); else open.add(g);
  const before = boxes.get('1,' + g), b = before && before.getBBox();
  const at = b && [b.x * camera.k + camera.x, b.y * camera.k + camera.y];
  draw();
  const a = boxes.get('1,' + g)?.getBBox();
  if (at && a) { camera.x = at[0] - a.x * camera.k; camera.y = at[1] - a.y * camera.k; move(); }
};

// Search.
let texts, found = [], at = 0;
const search = (q) => {
  const start = performance.now();
  texts ||= D.nodes.name.map((n, i) => (n + '\n' + S[D.nodes.target[i]] + '\n' + G[home[i]].path + '\n' + line(i)).toLowerCase());
  const words = q.toLowerCase().split(/\s+/).filter(Boolean);
  found = [];
  if (words.length) for (let i = 0; i < N && found.length < 200; i++) if (words.every((w) => texts[i].includes(w))) found.push(i);
  at = 0;
  hits();
  document.body.dataset.searched = performance.now() - start;
};
const hits = () => {
  $('#hits')?.remove();
  if (!box.value) return;
  const list = tag('div', undefined, { id: 'hits' });
  found.slice(0, 40).forEach((i, n) => {
    const d = tag('div', name(i) + '   ' + called(i) + '   ' + G[home[i]].path, n === at ? { class: 'on' } : {});
    d.onmousedown = () => { reveal(0, i); box.blur(); };
    list.append(d);
  });
  if (!found.length) list.append(tag('div', 'nothing found'));
  view.append(list);
};

// Charts: one per column that asks for it, the nodes from left to right or by module.
const chart = (c) => {
  const w = 1200, h = c.chart === 'flame' ? 17 * Math.min(6, 1 + Math.max(0, ...G.filter((g) => g.nodes).map((g) => g.depth))) + 40 : 110;
  const svg = el('svg', { viewBox: `0 0 ${w} ${h}`, preserveAspectRatio: 'none', height: h });
  svg.append(el('text', { x: 0, y: 12 }, c.title + (c.unit ? ' (' + c.unit + ')' : '')));
  const most = Math.max(...c.values.map((v) => v || 0), 1e-30);
  if (c.chart === 'line') {
    let d = 'M0 ' + (h - 4);
    c.values.forEach((v, i) => { d += 'L' + (i / N * w).toFixed(1) + ' ' + (h - 4 - (v || 0) / most * (h - 24)).toFixed(1); });
    svg.append(el('path', { d: d + 'L' + w + ' ' + (h - 4), style: 'fill:var(--group);stroke:var(--mark)' }));
    svg.append(el('text', { class: 's', x: w, y: 12, 'text-anchor': 'end' }, 'most: ' + most.toLocaleString()));
  } else if (c.chart === 'heat') {
    const cells = Math.min(N, 600), per = N / cells;
    for (let n = 0; n < cells; n++) {
      let v = 0;
      for (let i = Math.floor(n * per); i < Math.floor((n + 1) * per); i++) v = Math.max(v, c.values[i] || 0);
      const r = el('rect', { x: n * w / cells, y: 20, width: w / cells + .5, height: 40, style: `stroke:none;rx:0;fill:hsl(${220 - 200 * Math.sqrt(v / most)} 70% 55%)` });
      r.append(el('title', {}, name(Math.floor(n * per)) + ': ' + v));
      r.onclick = () => reveal(0, Math.floor(n * per));
      svg.append(r);
    }
  } else {
    const whole = c.totals[0] || 1, bar = (x, y, width, text, tip, go) => {
      if (width < 1.5) return;
      const g = el('g', { class: 'u' });
      g.append(el('title', {}, tip), el('rect', { class: 'c0_2', x, y, width, height: 15, style: 'rx:2px' }));
      if (width > 30) g.append(el('text', { class: 's', x: x + 3, y: y + 11 }, [...text].slice(0, Math.floor((width - 6) / 6.3)).join('')));
      g.onclick = go;
      svg.append(g);
    };
    const walk = (g, x, depth) => {
      if (depth > 5) return;
      for (let i = 0; i < G[g].slots.length; i += 3) {
        const [kind, ref] = [G[g].slots[i], G[g].slots[i + 1]];
        if (kind > 1) continue;
        const v = kind === 0 ? c.values[ref] || 0 : c.totals[ref] || 0, width = v / whole * w;
        const range = kind === 1 && G[ref].range;
        const text = kind === 0 ? name(ref) : G[ref].title;
        if (!range) bar(x, 20 + depth * 17, width, text, text + ': ' + v.toLocaleString() + ' ' + c.unit, () => reveal(kind, ref));
        if (kind === 1 && width >= 1.5) walk(ref, x, range ? depth : depth + 1);
        x += width;
      }
    };
    walk(0, 0, 0);
  }
  $('#charts').append(svg);
};

// What the reader does.
let drag = null;
view.onpointerdown = (e) => { drag = { x: e.clientX - camera.x, y: e.clientY - camera.y, far: 0, sx: e.clientX, sy: e.clientY }; };
view.onpointermove = (e) => { if (!drag) return; drag.far = Math.max(drag.far, Math.abs(e.clientX - drag.sx) + Math.abs(e.clientY - drag.sy)); if (drag.far > 4) { camera.x = e.clientX - drag.x; camera.y = e.clientY - drag.y; move(); } };
window.onpointerup = () => setTimeout(() => drag = null);
view.onwheel = (e) => { e.preventDefault(); const r = view.getBoundingClientRect(); zoom(Math.exp(-e.deltaY / 500), e.clientX - r.left, e.clientY - r.top); };
view.onclick = (e) => { if (drag && drag.far > 4) return; const u = e.target.closest('.u,.h'); if (u && u.dataset.k !== undefined) choose(+u.dataset.k, +u.dataset.r); };
box.oninput = () => search(box.value);
box.onblur = () => $('#hits')?.remove();
box.onkeydown = (e) => {
  if (e.key === 'ArrowDown' || e.key === 'ArrowUp') { at = Math.max(0, Math.min(found.length - 1, at + (e.key === 'ArrowDown' ? 1 : -1))); hits(); e.preventDefault(); }
  if (e.key === 'Enter' && found.length) { reveal(0, found[at]); box.blur(); view.focus(); }
  if (e.key === 'Escape') { box.value = ''; box.blur(); view.focus(); }
  e.stopPropagation();
};
document.onkeydown = (e) => {
  if (e.key === '/') { box.focus(); e.preventDefault(); }
  if (e.key === '+' || e.key === '-') zoom(e.key === '+' ? 1.25 : .8, view.clientWidth / 2, view.clientHeight / 2);
  if (e.key === '0') fit();
  if (e.key.startsWith('Arrow') && document.activeElement !== $('select')) {
    if (e.shiftKey || !chosen) { camera.x += 60 * ((e.key === 'ArrowLeft') - (e.key === 'ArrowRight')); camera.y += 60 * ((e.key === 'ArrowUp') - (e.key === 'ArrowDown')); move(); }
    else step(e.key);
    e.preventDefault();
  }
  if ((e.key === 'Enter' || e.key === ' ') && chosen && document.activeElement === view) { const [k, r] = chosen.split(',').map(Number); if (k === 1) choose(1, r); e.preventDefault(); }
};
const step = (key) => {
  const here = boxes.get(chosen)?.getBoundingClientRect();
  if (!here) return;
  let best = null, least = Infinity;
  for (const [k, r] of boxes) {
    if (k === chosen) continue;
    const b = r.getBoundingClientRect(), dx = b.x + b.width / 2 - here.x - here.width / 2, dy = b.y - here.y;
    const [along, across] = { ArrowDown: [dy, dx], ArrowUp: [-dy, dx], ArrowRight: [dx, dy], ArrowLeft: [-dx, dy] }[key];
    if (along > 2 && along + 3 * Math.abs(across) < least) [best, least] = [k, along + 3 * Math.abs(across)];
  }
  if (best) { chosen = best; mark(); show(...best.split(',').map(Number)); }
};
$('#all').onclick = () => {
  let total = 0;
  for (const g of G) total += g.slots.length / 3;
  if (total > MOST && !confirm('Draw ' + Math.round(total) + ' boxes? This may take a while.')) return;
  G.forEach((g, i) => open.add(i)); camera = null; draw();
};
$('#none').onclick = () => { open.clear(); open.add(0); camera = null; draw(); };
$('#fit').onclick = fit;
const theme = (dark) => document.documentElement.dataset.theme = dark ? 'dark' : 'light';
theme(matchMedia('(prefers-color-scheme:dark)').matches);
$('#theme').onclick = () => theme(document.documentElement.dataset.theme !== 'dark');
D.colors.forEach((c, i) => $('select').append(tag('option', c.title, { value: i })));
$('select').onchange = (e) => { colors = +e.target.value; draw(); };
$('h1').textContent = D.title;
$('#count').textContent = count(N, 'node');
D.columns.filter((c) => c.chart).forEach(chart);
if (D.table) aside.append(tag('pre', D.table, { class: 'table' })); else show(1, 0);
for (const g of D.open) for (const a of around(g)) open.add(a);
draw();
const wanted = new URLSearchParams(location.hash.slice(1)).get('node');
if (wanted !== null) { const i = D.nodes.name.indexOf(wanted); if (i >= 0) reveal(0, i); }
window.onhashchange = () => { const w = new URLSearchParams(location.hash.slice(1)).get('node'), i = D.nodes.name.indexOf(w); if (i >= 0 && chosen !== '0,' + i) reveal(0, i); };
document.body.dataset.ready = performance.now();
