"use strict";
// Reads the figures twice a second and draws them. Texts from the network are set as text, never as HTML.
const PAST_MS = 600000;
const state = { since: null, measure: "rate", span: 60000, pasts: new Map(), cards: new Map(), now: 0, hover: null, event: -1 };

const MEASURES = {
  rate: { name: "bit/s", text: (v) => si(v) + "bit/s", value: (s, up) => (up ? s.up : s.down) },
  rtt: { name: "round-trip time", text: (v) => (v * 1e3).toFixed(1) + " ms", value: (s) => s.srtt },
  loss: { name: "chunks lost", text: (v) => (v * 100).toFixed(1) + " %", value: (s) => (s.sent > 0 ? Math.min(1, s.lost / s.sent) : null) },
  cwnd: { name: "congestion window", text: (v) => si(v) + "B", value: (s) => s.cwnd },
};

function si(v) {
  for (const [unit, prefix] of [[1e9, "G"], [1e6, "M"], [1e3, "k"]]) if (v >= unit * 0.9995) return (v / unit).toFixed(1) + " " + prefix;
  return v.toFixed(0) + " ";
}
function duration(s) {
  s = Math.round(s);
  return s < 100 ? `${s} s` : s < 6000 ? `${Math.floor(s / 60)} min ${String(s % 60).padStart(2, "0")} s` : `${Math.floor(s / 3600)} h ${Math.floor(s / 60) % 60} min`;
}
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}
function svg(tag, attributes = {}, text) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  if (text !== undefined) element.textContent = text;
  return element;
}
// Only a change touches the page, so that selections and the focus stay.
function set(element, text) { if (element.textContent !== text) element.textContent = text; }

function nameOf(path) { return path.interface || path.local.replace(/:\d+$/, ""); }

function remember(process) {
  const seen = new Set();
  for (const association of process.associations) {
    for (const path of association.paths) {
      const key = [association.association, path.path, path.local, path.remote].join(" ");
      seen.add(key);
      path.key = key;
      const past = state.pasts.get(key) || [];
      for (const [at, up, down, srtt, sent, lost, cwnd] of path.samples) {
        if (!past.length || at > past[past.length - 1].at) past.push({ at, up, down, srtt, sent, lost, cwnd });
      }
      while (past.length && past[0].at < process.now_ms - PAST_MS) past.shift();
      state.pasts.set(key, past);
    }
  }
  for (const key of state.pasts.keys()) if (!seen.has(key)) state.pasts.delete(key);
}

// At most as many points as the chart has room for, each a mean.
function pointsOf(association, path, count) {
  const up = association.up_bps >= association.down_bps;
  const begin = state.now - state.span, step = state.span / count;
  const sums = Array.from({ length: count }, () => ({ v: 0, n: 0, sent: 0, lost: 0 }));
  for (const s of state.pasts.get(path.key) || []) {
    const i = Math.floor((s.at - begin) / step);
    if (i < 0 || i >= count) continue;
    sums[i].sent += s.sent;
    sums[i].lost += s.lost;
    const v = MEASURES[state.measure].value(s, up);
    if (v === null) continue;
    sums[i].v += v;
    sums[i].n += 1;
  }
  // Losses are counts: their ratio is that of the sums.
  const value = (b) => (state.measure === "loss" ? (b.sent ? Math.min(1, b.lost / b.sent) : null) : b.n ? b.v / b.n : null);
  return sums.map((b, i) => ({ at: begin + (i + 0.5) * step, v: value(b) }));
}

function nice(max) {
  const power = 10 ** Math.floor(Math.log10(max));
  for (const m of [1, 2, 2.5, 5, 10]) if (m * power >= max) return m * power;
  return max;
}

function drawChart(card, association) {
  const width = Math.max(card.chart.clientWidth, 200), height = card.svg.clientHeight || 240;
  const measure = MEASURES[state.measure];
  const left = 84, right = width - 8, top = 10, bottom = height - 24;
  const count = state.span === 60000 ? 120 : 200;
  card.lines = association.paths.map((path, i) => ({ path, i, points: pointsOf(association, path, count) }));
  const values = card.lines.flatMap((line) => line.points.map((p) => p.v)).filter((v) => v !== null);
  const max = nice(Math.max(...values, { rate: 1000, rtt: 0.001, loss: 0.01, cwnd: 1000 }[state.measure]));
  const x = (at) => left + (right - left) * (1 - (state.now - at) / state.span);
  const y = (v) => bottom - (bottom - top) * (v / max);
  card.scale = { x, y, left, right, width };
  const parts = [];
  for (let i = 0; i <= 4; i++) {
    const v = (max * i) / 4;
    parts.push(svg("line", { class: "grid", x1: left, x2: right, y1: y(v), y2: y(v) }));
    parts.push(svg("text", { x: left - 8, y: y(v) + 4, "text-anchor": "end" }, measure.text(v)));
  }
  const ticks = width > 600 ? 6 : 3;
  for (let i = 0; i <= ticks; i++) {
    const ago = (state.span * i) / ticks;
    const text = i === 0 ? "now" : state.span === 60000 ? `-${ago / 1000} s` : `-${(ago / 60000).toFixed(1).replace(/\.0$/, "")} min`;
    parts.push(svg("text", { x: x(state.now - ago), y: height - 6, "text-anchor": i === 0 ? "end" : i === ticks ? "start" : "middle" }, text));
  }
  for (const line of card.lines) {
    let d = "", pen = false;
    for (const p of line.points) {
      if (p.v === null) { pen = false; continue; }
      d += `${pen ? "L" : "M"}${x(p.at).toFixed(1)},${y(p.v).toFixed(1)}`;
      pen = true;
    }
    parts.push(svg("path", { class: `curve c${line.i % 8}`, d, "data-path": line.path.path }));
  }
  card.svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  card.svg.setAttribute("aria-label", `${measure.name} of ${association.paths.length} paths in the last ${duration(state.span / 1000)}`);
  card.svg.replaceChildren(...parts);
  drawTip(card);
}

function drawTip(card) {
  card.svg.querySelector(".at")?.remove();
  if (!state.hover || state.hover.card !== card || !card.scale) { card.tip.hidden = true; return; }
  const { left, right } = card.scale;
  const at = Math.min(Math.max(state.hover.x, left), right);
  const share = (at - left) / (right - left);
  card.svg.append(svg("line", { class: "at", x1: at, x2: at, y1: 10, y2: (card.svg.clientHeight || 240) - 24 }));
  const rows = card.lines.map((line) => {
    const point = line.points[Math.min(line.points.length - 1, Math.floor(share * line.points.length))];
    const text = point.v === null ? "-" : MEASURES[state.measure].text(point.v);
    return make("div", {}, make("span", {}, make("span", { class: `swatch s${line.i % 8}` }), `${line.path.path} ${nameOf(line.path)}`), make("span", {}, text));
  });
  const ago = (1 - share) * state.span / 1000;
  card.tip.replaceChildren(make("div", {}, `${ago.toFixed(1)} s ago`), ...rows);
  card.tip.hidden = false;
  // On the side where there is room.
  const place = at > (left + right) / 2 ? Math.max(0, at - card.tip.offsetWidth - 12) : Math.min(at + 12, card.scale.width - card.tip.offsetWidth);
  card.tip.style.setProperty("left", `${place}px`);
}

async function setRank(association, path, rank, button) {
  button.disabled = true;
  try {
    const answer = await fetch("rank", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ association, path, rank }) });
    if (!answer.ok) say(await answer.text(), true);
    await look();
  } catch (error) {
    say("manypath does not answer", true);
  }
  button.disabled = false;
}

const CELLS = [
  ["up", (p) => si(p.up_bps) + "bit/s"], ["down", (p) => si(p.down_bps) + "bit/s"],
  ["RTT", (p) => (p.srtt_s === null ? "-" : (p.srtt_s * 1e3).toFixed(1) + " ms")],
  ["loss", (p) => (p.loss === null ? "-" : (p.loss * 100).toFixed(1) + " %")], ["window", (p) => si(p.cwnd_bytes) + "B"],
];

function newRow(association, path, index) {
  const row = { tr: make("tr", { "data-path": path.path }), numbers: [] };
  row.name = make("b");
  row.ends = make("span", { class: "ends" });
  row.state = make("span");
  row.rank = make("span");
  row.why = make("span", { class: "ends" });
  row.button = make("button");
  row.button.addEventListener("click", () => setRank(association.association, path.path, row.next, row.button));
  row.tr.append(make("td", { class: "name" }, make("span", { class: `swatch s${index % 8}` }), row.name, row.ends), make("td", { class: "state" }, row.state, row.rank, row.why));
  for (const [title] of CELLS) {
    const cell = make("td", { class: "number", "data-title": title });
    row.numbers.push(cell);
    row.tr.append(cell);
  }
  row.tr.append(make("td", {}, row.button));
  return row;
}

function fillRow(row, path) {
  set(row.name, `${path.path} ${nameOf(path)}`);
  set(row.ends, `${path.local} - ${path.remote}${path.relay ? " via " + path.relay : ""}`);
  row.state.className = path.state === "active" && path.why ? "idle" : path.state;
  set(row.state, row.state.className === "idle" ? "idle" : path.state.replaceAll("_", " "));
  set(row.rank, path.rank === "normal" ? "" : `, ${path.rank}`);
  set(row.why, path.why ? `no data: ${path.why}` : "");
  CELLS.forEach(([, text], i) => set(row.numbers[i], text(path)));
  row.next = path.rank === "backup" ? "normal" : "backup";
  set(row.button, row.next === "backup" ? "Set to backup" : "Set to normal");
}

function newCard() {
  const card = { rows: new Map() };
  card.title = make("h2");
  card.sums = make("p", { class: "sums" });
  card.meter = make("div", { class: "meter" }, make("div"));
  card.svg = svg("svg", { role: "img" });
  card.tip = make("div", { class: "tip" });
  card.chart = make("div", { class: "chart" }, card.svg, card.tip);
  const titles = ["path", "state", ...CELLS.map(([title]) => title), ""];
  const head = make("tr", {}, ...titles.map((title, i) => make("th", { class: i > 1 && title ? "number" : "", scope: "col" }, title)));
  card.body = make("tbody");
  card.element = make("section", { class: "card" }, card.title, card.sums, card.meter, card.chart, make("table", {}, make("thead", {}, head), card.body));
  card.chart.addEventListener("pointermove", (event) => {
    state.hover = { card, x: event.clientX - card.chart.getBoundingClientRect().left };
    drawTip(card);
  });
  card.chart.addEventListener("pointerleave", () => { state.hover = null; drawTip(card); });
  return card;
}

// The time that the rest takes at the present rate.
function left(association) {
  const rate = Math.max(association.up_bps, association.down_bps) / 8, rest = association.total_bytes - association.done_bytes;
  return rate > 1 && rest > 0 ? `, ${duration(rest / rate)} left` : "";
}

function fillCard(card, association) {
  set(card.title, `With ${association.peer}${association.encrypted ? "" : " (NOT ENCRYPTED)"}`);
  const known = association.total_bytes !== null;
  const share = known ? (association.total_bytes ? association.done_bytes / association.total_bytes : 1) : 0;
  const done = known ? `${Math.floor(share * 100)} % of ${si(association.total_bytes)}B${left(association)}` : `${si(association.acked_bytes)}B sent, ${si(association.received_bytes)}B received`;
  set(card.sums, `up ${si(association.up_bps)}bit/s, down ${si(association.down_bps)}bit/s; ${done}`);
  card.meter.hidden = !known;
  card.meter.firstChild.style.setProperty("width", `${share * 100}%`);
  const seen = new Set(association.paths.map((path) => path.key));
  for (const [key, row] of card.rows) if (!seen.has(key)) { row.tr.remove(); card.rows.delete(key); }
  association.paths.forEach((path, index) => {
    let row = card.rows.get(path.key);
    if (!row) {
      row = newRow(association, path, index);
      card.rows.set(path.key, row);
      card.body.append(row.tr);
    }
    fillRow(row, path);
  });
  drawChart(card, association);
}

function show(process) {
  set(document.getElementById("title"), `manypath ${process.command}`);
  document.title = `manypath ${process.command} (${process.pid})`;
  say(`process ${process.pid}, ${duration(process.now_ms / 1000)}`, false);
  const main = document.getElementById("associations");
  const seen = new Set(process.associations.map((a) => a.association));
  for (const [number, card] of state.cards) if (!seen.has(number)) { card.element.remove(); state.cards.delete(number); }
  let empty = main.querySelector(".empty");
  if (!seen.size && !empty) main.append(make("p", { class: "empty" }, "There is no association now."));
  if (seen.size && empty) empty.remove();
  for (const association of process.associations) {
    let card = state.cards.get(association.association);
    if (!card) {
      card = newCard();
      state.cards.set(association.association, card);
      main.append(card.element);
    }
    fillCard(card, association);
  }
  const events = document.getElementById("events");
  for (const event of process.events) {
    if (event.number <= state.event) continue;
    state.event = event.number;
    events.prepend(make("li", {}, make("time", {}, `${(event.at_ms / 1000).toFixed(1)} s`), event.text));
    while (events.children.length > 500) events.lastChild.remove();
  }
}

function say(text, isBad) {
  const status = document.getElementById("status");
  set(status, text);
  status.classList.toggle("gone", isBad);
}

let looking = false;
async function look() {
  if (looking) return;
  looking = true;
  try {
    const answer = await fetch("figures" + (state.since === null ? "" : `?since=${state.since}`));
    if (!answer.ok) throw new Error(await answer.text());
    const process = await answer.json();
    // Another process has the port now.
    if (state.pid !== undefined && state.pid !== process.pid) { location.reload(); return; }
    state.pid = process.pid;
    state.since = state.now = process.now_ms;
    remember(process);
    show(process);
    state.process = process;
  } catch (error) {
    say("manypath does not answer: it has ended, or cannot be reached", true);
  } finally {
    looking = false;
  }
}

for (const id of ["measure", "span"]) {
  const group = document.getElementById(id);
  group.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    for (const other of group.children) other.setAttribute("aria-pressed", other === button);
    state[id] = id === "span" ? Number(button.dataset.value) : button.dataset.value;
    if (state.process) for (const a of state.process.associations) drawChart(state.cards.get(a.association), a);
  });
}
addEventListener("resize", () => { if (state.process) for (const a of state.process.associations) drawChart(state.cards.get(a.association), a); });
look();
setInterval(look, 500);
