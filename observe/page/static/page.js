// The page of a controller. It shows what server-sent events tell (see page.go) and keeps nothing.
"use strict";
(() => {
const $ = (id) => document.getElementById(id);
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();

// make creates an element with attributes and children. Text is text, never HTML.
function make(tag, attributes, ...children) {
  const e = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name === "colour") e.style.background = value;
    else if (value !== undefined) e.setAttribute(name, value);
  }
  e.append(...children.filter((c) => c !== undefined && c !== null).map((c) => c instanceof Node ? c : String(c)));
  return e;
}

// text sets what an element says, if that is something else than before.
function text(e, said) { if (e.textContent !== said) e.textContent = said; }

// ---- numbers

const units = ["B", "KiB", "MiB", "GiB", "TiB"];
function bytes(b) {
  if (!b) return "0";
  const i = Math.min(units.length - 1, Math.max(0, Math.floor(Math.log2(Math.abs(b)) / 10)));
  const v = b / 2 ** (10 * i);
  return (i === 0 ? v.toFixed(0) : v >= 100 ? v.toFixed(0) : v >= 10 ? v.toFixed(1) : v.toFixed(2)) + " " + units[i];
}
const rate = (b) => bytes(b) + "/s";
function span(ns) {
  const s = ns / 1e9;
  if (ns === 0) return "0";
  if (s < 1e-3) return (ns / 1e3).toFixed(0) + " µs";
  if (s < 1) return (ns / 1e6).toPrecision(3) + " ms";
  if (s < 60) return s.toPrecision(3) + " s";
  const parts = [[86400, "d"], [3600, "h"], [60, "m"], [1, "s"]];
  const first = parts.findIndex(([size]) => s >= size);
  const two = parts.slice(first, first + 2);
  return Math.floor(s / two[0][0]) + two[0][1] + (two[1] ? " " + Math.floor(s % two[0][0] / two[1][0]) + two[1][1] : "");
}
const percent = (x) => Math.abs(x) < 0.0005 ? "0 %" : (100 * x).toFixed(Math.abs(x) < 0.1 ? 1 : 0) + " %";
const short = (said) => said.replace(/\.0+ /, " "); // of a tick that is round
const per = (x) => x >= 100 ? x.toFixed(0) : x.toPrecision(3);
const clock = (ms) => new Date(ms).toLocaleTimeString([], {hour12: false});
const lossText = (l) => l === undefined || l === null ? "–" : typeof l === "number" ? l.toPrecision(4) : "not finite";
const of = (o, key) => Object.hasOwn(o, key) ? o[key] : undefined; // names may be those of methods
const over = (r) => ["finished", "stopped", "failed"].includes(r.phase);

// ---- state

let samples = [], now = null, hello = null, detail = null, losses = [], picture = null, measured = null, log = [];
let chosen = ""; // the device whose memory and link are shown, where there are several
let name = "", source = null, retry = 0, range = 600, charts = {}, wanted = null, sorted = {by: "bytes", up: false};

// ---- connection

function connect() {
  clearTimeout(retry);
  if (source) source.close();
  source = new EventSource("events" + (name ? "?job=" + encodeURIComponent(name) : ""));
  const on = (event, take) => source.addEventListener(event, (e) => take(JSON.parse(e.data)));
  on("hello", (h) => {
    if (hello && hello.version !== h.version) return location.reload();
    hello = h;
    const first = h.samples.length ? h.samples[0].at_ms : Infinity;
    samples = samples.filter((s) => s.at_ms < first).concat(h.samples); // a controller that begins anew has few
    log = [];
    state("live", "live");
  });
  on("now", (n) => {
    if (now && !n.sample.length) return; // the controller that was started again has not answered: what it had stays
    now = n;
    for (const s of n.sample) if (!samples.length || s.at_ms > samples[samples.length - 1].at_ms) samples.push(s);
    if (samples.length > 5000) samples.splice(0, 1000);
    draw();
  });
  on("job", (d) => {
    detail = d;
    const last = losses.length ? losses[losses.length - 1].iteration : -1;
    losses.push(...d.losses.filter((l) => l.iteration > last));
    drawJob();
  });
  on("measured", (m) => { measured = m; drawIteration(); });
  on("log", (lines) => { log = log.concat(lines).slice(-200); drawLog(); });
  source.onerror = () => { // a browser's own second try would end at the first answer that is no stream
    source.close();
    state("lost", "no connection; trying again");
    retry = setTimeout(connect, 1000);
  };
}

function state(kind, said) {
  $("connection").className = kind;
  text($("connected"), said);
}

// ---- what is shown

function route() {
  const at = location.hash.match(/^#\/job\/(.+)$/);
  name = at ? decodeURIComponent(at[1]) : "";
  detail = picture = measured = null; losses = []; log = []; wanted = null;
  $("overview").hidden = !!name;
  $("job").hidden = !name;
  $("plan").hidden = $("history").hidden = true;
  for (const key of ["loss", "steps"]) drop(key);
  text($("name"), name); text($("why"), ""); text($("said"), "");
  $("jobfacts").replaceChildren(); $("plans").replaceChildren();
  $("log").textContent = "";
  document.title = name ? name + " – Tensile" : "Tensile";
  connect();
  if (now) draw();
}

function facts(list, rows) {
  list.replaceChildren(...rows.map(([value, label]) => make("li", {}, make("b", {}, value), make("span", {}, label))));
}

// colours go to jobs in the order in which they are first seen.
const given = new Map();
function colourOf(part) {
  if (part.startsWith("/")) return colour("shared");
  if (!given.has(part)) given.set(part, given.size % 8);
  return colour("c" + given.get(part));
}
const partName = {"/shared": "in turns", "/processes": "processes", "/unreachable": "out of reach"};

// shown is that device, and moments are what its memory and link were used for, by sample.
const shown = () => now.devices.find((d) => d.name === chosen) || now.devices[0];
const nothing = {budget_bytes: 0, parts: {}, link: {out: 0, in: 0}};
const moments = () => samples.map((s) => shown() && of(s.devices, shown().name) || nothing);

// place says where a job is, among several devices.
const place = (r) => now && now.devices.length > 1 && r.device_name ? "on device " + r.device_name : "";

function draw() {
  const several = now.devices.length > 1;
  text($("device"), several ? now.devices.length + (now.devices_left || 0) + " devices" : now.devices.length ? now.devices[0].identity : "no device");
  $("trouble").hidden = !now.trouble;
  text($("trouble"), now.trouble);
  if (name) return;
  facts($("facts"), [
    [bytes(now.used_bytes) + (now.budget_bytes ? " of " + bytes(now.budget_bytes) : ""), "device memory" +
      (now.memory_sharing ? ", shared by " + now.memory_sharing : "")],
    ...(now.saved > 0 ? [[percent(now.saved), "saved by plans and sharing"]] : []),
    [now.running, "running"],
    [now.waiting + (now.need_bytes ? " for " + bytes(now.need_bytes) : ""), "waiting"],
    ...(now.parked ? [[now.parked, "parked"]] : []),
    [rate(sum(now.devices, (d) => d.link_used.out)) + " · " + rate(sum(now.devices, (d) => d.link_used.in)), (several ? "links" : "link") + ", out · in"],
    [bytes(now.host_used_bytes) + (now.host_memory_bytes ? " of " + bytes(now.host_memory_bytes) : ""), "host memory"],
  ]);
  $("budget").hidden = !hello.steer || !shown() || !shown().own; // that of another is its executor's
  const alive = now.jobs.filter((r) => !over(r)), past = now.jobs.filter(over).reverse();
  $("devices").hidden = !several;
  if (several) rows($("devices").tBodies[0], now.devices, deviceRow, (d) => d.name);
  text($("left"), now.devices_left ? now.devices_left + " more devices are not shown" : "");
  $("tenants").hidden = now.tenants.length === 0;
  rows($("tenants").tBodies[0], now.tenants, tenantRow, (t) => t.name || "");
  text($("tenantsleft"), now.tenants_left ? now.tenants_left + " more tenants are not shown" : "");
  text($("of"), several ? " of " + shown().name : "");
  text($("oflink"), several ? " of " + shown().name : "");
  $("none").hidden = now.jobs.length > 0;
  $("jobs").hidden = alive.length === 0;
  rows($("jobs").tBodies[0], alive, jobRow);
  $("past").hidden = past.length === 0;
  text($("past").querySelector("summary"), past.length + (past.length === 1 ? " job is over" : " jobs are over"));
  rows($("past").querySelector("tbody"), past, pastRow);
  const queue = alive.filter((r) => r.phase === "queued" || r.why);
  $("queue").hidden = queue.length === 0;
  $("waiting").replaceChildren(...queue.map((r) => make("li", {}, make("b", {}, r.spec.name),
    r.why || "queued", r.phase === "queued" && r.waiting_ns ? make("span", {class: "note"}, " for " + span(now.at_ms * 1e6 - r.waiting_ns)) : "")));
  drawMemory();
  drawLink();
}

const sum = (list, what) => list.reduce((all, x) => all + what(x), 0);

// rows updates a table in place, so that focus and selection stay.
function rows(body, list, row, called = (r) => r.spec.name) {
  const old = new Map([...body.rows].map((tr) => [tr.dataset.key, tr]));
  list.forEach((r, i) => {
    const key = called(r), tr = old.get(key) || make("tr", {"data-key": key});
    old.delete(key);
    row(tr, r);
    if (body.rows[i] !== tr) body.insertBefore(tr, body.rows[i] || null);
  });
  for (const tr of old.values()) tr.remove();
}

// cells sets the cells of a row: each is a text, or an element that is put there once.
function cells(tr, list) {
  list.forEach(([said, attributes], i) => {
    let td = tr.cells[i];
    if (!td) {
      td = make("td", attributes);
      tr.append(td);
    }
    if (attributes && attributes.class !== undefined && td.className !== attributes.class) td.className = attributes.class;
    if (said instanceof Function) said(td);
    else text(td, said);
  });
}

const link = (r) => (td) => {
  if (!td.firstChild) td.append(make("span", {class: "swatch"}), make("a", {href: "#/job/" + encodeURIComponent(r.spec.name)}, r.spec.name));
  const on = place(r);
  if (on && !td.querySelector("small")) td.append(make("small", {}));
  if (td.querySelector("small")) text(td.querySelector("small"), on);
  td.firstChild.style.background = over(r) ? colour("plain") : colourOf(r.spec.name);
};

const progress = (r) => (td) => {
  if (!td.firstChild) td.append(make("div", {class: "progress"}, make("span", {class: "bar"}, make("i")), make("span", {class: "iteration"})));
  td.querySelector("i").style.width = 100 * r.iteration / r.spec.iterations + "%";
  text(td.querySelector(".iteration"), r.iteration + "/" + r.spec.iterations);
};

const last = (r) => r.result && r.result.last_loss !== undefined ? r.result.last_loss : r.loss;

// lossCell is the newest loss behind a small curve of all of them.
const lossCell = (r) => (td) => {
  if (!td.firstChild) td.append($("curve").content.cloneNode(true), make("span"));
  const finite = (r.curve || []).map((l, i) => [i, l]).filter(([, l]) => typeof l === "number");
  const least = Math.min(...finite.map(([, l]) => l)), most = Math.max(...finite.map(([, l]) => l));
  const points = finite.map(([i, l]) => (i / (r.curve.length - 1) * 60 + 1).toFixed(1) + "," + (1 + 14 * (most > least ? (most - l) / (most - least) : 0.5)).toFixed(1)).join(" ");
  td.firstChild.style.display = finite.length > 1 ? "" : "none";
  const line = td.firstChild.firstChild;
  if (line.getAttribute("points") !== points) line.setAttribute("points", points);
  text(td.lastChild, lossText(last(r)));
};

// deviceRow is a device, with a button that has its memory and link shown.
function deviceRow(tr, d) {
  const pick = (td) => {
    if (!td.firstChild) {
      const b = make("button", {type: "button"}, d.name);
      b.onclick = () => { chosen = d.name; draw(); };
      td.append(b);
    }
    td.firstChild.setAttribute("aria-pressed", d === shown());
  };
  const used = (td) => {
    if (!td.firstChild) td.append(make("div", {class: "progress"}, make("span", {class: "bar"}, make("i")), make("span", {class: "iteration"})));
    td.querySelector("i").style.width = d.budget_bytes ? Math.min(100, 100 * d.used_bytes / d.budget_bytes) + "%" : "0";
    text(td.querySelector(".iteration"), bytes(d.used_bytes) + (d.budget_bytes ? " of " + bytes(d.budget_bytes) : ""));
  };
  cells(tr, [
    [pick],
    [d.drained ? "drained" : d.own ? "the controller’s" : d.executors ? "ready" : d.silent ? "out of reach" : "gone"],
    [used, {class: "wide"}],
    [String(d.jobs), {class: "n", "data-label": "jobs"}],
    [String(d.executors) + (d.silent ? " + " + d.silent + " silent" : ""), {class: "n", "data-label": "executors"}],
    [rate(d.link_used.out) + " · " + rate(d.link_used.in), {class: "n", "data-label": "link"}],
    [bytes(d.host_used_bytes) + (d.host_memory_bytes ? " of " + bytes(d.host_memory_bytes) : ""), {class: "n", "data-label": "host memory"}],
    [d.identity + (d.host ? " at " + d.host : ""), {class: "wide note"}],
  ]);
}

function tenantRow(tr, t) {
  const owed = t.behind_ns || 0;
  cells(tr, [
    [t.name || "administrator"],
    [String(t.share), {class: "n", "data-label": "share"}],
    [String(t.running), {class: "n", "data-label": "running"}],
    [String(t.waiting), {class: "n", "data-label": "waiting"}],
    [t.speed.toFixed(2), {class: "n", "data-label": "speed"}],
    [(owed < 0 ? "−" : "") + span(Math.abs(owed)), {class: "n", "data-label": "owed"}],
    [span(t.served_ns), {class: "n", "data-label": "served"}],
  ]);
}

function jobRow(tr, r) {
  cells(tr, [
    [link(r)],
    [r.phase, {class: "state-" + r.phase}],
    [progress(r), {class: "wide"}],
    [r.iterations_per_second ? per(r.iterations_per_second) : "–", {class: "n", "data-label": "it/s"}],
    [r.time_left_ns ? span(r.time_left_ns) : "–", {class: "n", "data-label": "left"}],
    [lossCell(r), {class: "n loss", "data-label": "loss"}],
    [bytes(r.arena_bytes), {class: "n", "data-label": "memory"}],
    [r.saved ? percent(r.saved) : "–", {class: "n", "data-label": "saved"}],
    [r.relative_speed ? percent(r.relative_speed) : "–", {class: "n", "data-label": "speed"}],
    [String(Math.max(1, r.spec.priority || 0)), {class: "n", "data-label": "priority"}],
  ]);
}

function pastRow(tr, r) {
  cells(tr, [[link(r)], [r.phase, {class: "state-" + r.phase}], [r.iteration + "/" + r.spec.iterations, {"data-label": "iterations"}],
    [lossCell(r), {class: "n loss", "data-label": "loss"}], [r.why || "", {class: "wide"}]]);
}

// ---- charts over time

function drop(key) {
  if (charts[key]) charts[key].destroy();
  delete charts[key];
  $(key).replaceChildren();
}

const axis = (more) => Object.assign({stroke: colour("dim"), grid: {stroke: colour("grid"), width: 1}, ticks: {stroke: colour("grid"), width: 1, size: 4},
  font: "11px system-ui, sans-serif"}, more);

// plot draws a chart, anew if its series are others than before.
function plot(key, signature, data, options) {
  const width = $(key).clientWidth;
  if (width === 0) return null;
  if (charts[key] && charts[key].signature !== signature) drop(key);
  if (!charts[key]) {
    charts[key] = new uPlot(Object.assign({width, height: 200, legend: {show: false}, cursor: {points: {size: 5}, drag: {x: true, y: false}}}, options()), data, $(key));
    charts[key].signature = signature;
  } else {
    charts[key].setData(data, false);
  }
  return charts[key];
}

// times is an axis of times of day.
const times = () => axis({space: 70, size: 30, values: (u, v, i, space, step) => v.map((s) => {
  const at = new Date(s * 1000), said = at.toLocaleTimeString([], {hour12: false, hour: "2-digit", minute: "2-digit", second: step < 60 ? "2-digit" : undefined});
  return step < 86400 ? said : at.toLocaleDateString();
})});

// shownRange is what of the time axis is shown, in seconds.
function shownRange(x) {
  const to = x.length ? x[x.length - 1] : Date.now() / 1000, first = x.length ? x[0] : to - 60;
  return {min: Math.max(first, range ? to - range : first) - (x.length > 1 ? 0 : 30), max: to};
}

// binary lets an axis have its ticks at multiples of powers of two.
const binary = (u, i, min, max, space) => {
  let step = 1;
  while (step * 6 < max - min) step *= 2;
  const list = [];
  for (let v = Math.ceil(min / step) * step; v <= max; v += step) list.push(v);
  return list;
};

function drawMemory() {
  const parts = [], list = moments();
  for (const s of list) for (const part in s.parts) if (!parts.includes(part)) parts.push(part);
  const order = now.jobs.map((r) => r.spec.name);
  parts.sort((a, b) => (a.startsWith("/") - b.startsWith("/")) || order.indexOf(a) - order.indexOf(b));
  const x = samples.map((s) => s.at_ms / 1000), data = [x];
  let below = list.map(() => 0);
  const stack = [];
  for (const part of parts) {
    below = list.map((s, i) => below[i] + (of(s.parts, part) || 0));
    stack.unshift(below);
  }
  data.push(...stack, list.map((s) => s.budget_bytes || null));
  const top = Math.max(1, ...below, ...list.map((s) => s.budget_bytes || 0)) * 1.06;
  const stepped = uPlot.paths.stepped({align: 1});
  const u = plot("memory", [shown() && shown().name, ...parts].join("\n"), data, () => ({
    scales: {x: {time: true}, y: {range: () => [0, charts.memory ? charts.memory.top : top]}},
    axes: [times(), axis({size: 62, splits: binary, values: (u, v) => v.map((b) => short(bytes(b)))})],
    series: [{}, ...[...parts].reverse().map((part) => ({fill: colourOf(part), stroke: colour("card"), width: 1, paths: stepped, points: {show: false}})),
      {stroke: colour("stall"), dash: [6, 4], width: 2, paths: stepped, points: {show: false}}],
    hooks: {setCursor: [() => memoryKeys(parts)]},
  }));
  if (u) {
    u.top = top;
    u.batch(() => { u.setScale("x", shownRange(x)); u.setScale("y", {min: 0, max: top}); });
  }
  memoryKeys(parts);
}

function memoryKeys(parts) {
  const at = charts.memory && charts.memory.cursor.idx, i = at ?? samples.length - 1, s = moments()[i];
  if (!s) return;
  $("parts").replaceChildren(...(at != null ? [make("li", {}, make("b", {}, clock(samples[i].at_ms)))] : []),
    ...parts.filter((p) => of(s.parts, p)).map((p) => make("li", {}, make("i", {colour: colourOf(p)}), (of(partName, p) || p) + " ", make("b", {}, bytes(s.parts[p])))),
    ...(s.budget_bytes ? [make("li", {}, make("i", {class: "rule"}), "budget ", make("b", {}, bytes(s.budget_bytes)))] : []));
}

function drawLink() {
  const x = samples.map((s) => s.at_ms / 1000), list = moments(), carries = shown() && shown().link;
  const data = [x, list.map((s) => s.link.out), list.map((s) => s.link.in)];
  const u = plot("link", shown() ? shown().name : "", data, () => ({
    scales: {x: {time: true}, y: {range: (u, min, max) => [0, Math.max(1, max) * 1.1]}},
    axes: [times(), axis({size: 68, splits: binary, values: (u, v) => v.map((b) => short(rate(b)))})],
    series: [{}, ...["out", "in"].map((way) => ({stroke: colour(way), width: 2, points: {show: false}}))],
    hooks: {setCursor: [linkKeys]},
  }));
  if (u) u.setScale("x", shownRange(x));
  text($("linkrate"), carries && carries.out ? "carries " + rate(carries.out) + " out, " + rate(carries.in) + " in" : "");
  linkKeys();
}

function linkKeys() {
  const at = charts.link && charts.link.cursor.idx, s = moments()[at ?? samples.length - 1], carries = shown() && shown().link;
  if (!s) return;
  $("ways").replaceChildren(...[["out", "to the host"], ["in", "to the device"]].map(([way, label]) =>
    make("li", {}, make("i", {colour: colour(way)}), label + " ", make("b", {}, rate(s.link[way])),
      carries && carries[way] ? " (" + percent(s.link[way] / carries[way]) + ")" : "")));
}

for (const [label, seconds] of [["10 min", 600], ["1 h", 3600], ["all", 0]]) {
  const b = make("button", {type: "button", "aria-pressed": seconds === range}, label);
  b.onclick = () => {
    range = seconds;
    for (const other of b.parentNode.children) other.setAttribute("aria-pressed", other === b);
    if (now) draw();
  };
  document.querySelector(".ranges").append(b);
}

// ---- a job

function drawJob() {
  const r = detail.job, it = detail.newest;
  text($("why"), [r.spec.model, r.phase, r.executor ? "at " + r.executor : "", place(r), r.spec.owner ? "of " + r.spec.owner : "", r.why || ""].filter(Boolean).join(" · "));
  facts($("jobfacts"), [
    [r.iteration + "/" + r.spec.iterations, "iterations"],
    [r.iterations_per_second ? per(r.iterations_per_second) + "/s" : "–", "speed" + (r.relative_speed ? ", " + percent(r.relative_speed) + " of its ops’ own" : "")],
    ...(r.measured_slowdown ? [[r.measured_slowdown.toFixed(2), "times as long as alone"]] : []),
    ...(now.tenants.length ? [[r.spec.owner || "administrator", "tenant"]] : []),
    [r.time_left_ns ? span(r.time_left_ns) : "–", "left"],
    [lossText(last(r)), "loss"],
    [over(r) ? "–" : bytes(r.arena_bytes), "memory" + (r.without_plan_bytes ? ", without a plan " + bytes(r.without_plan_bytes) : "")],
    ...(it && !over(r) ? [[span(it.wall_ns), "iteration " + it.iteration], [span(it.stall_ns), "of it stall"]] : []),
    ...(it && it.gate_ns ? [[span(it.gate_ns), "of it waits for memory"]] : []),
    [String(Math.max(1, r.spec.priority || 0)), "priority"],
  ]);
  $("steer").hidden = !hello.steer || over(r);
  for (const b of $("steer").querySelectorAll("[data-verb]")) {
    const parked = r.phase === "parked" || r.phase === "parking";
    b.hidden = b.dataset.verb === "resume" ? !parked : b.dataset.verb === "park" ? parked : false;
  }
  drawLosses();
  drawPlans();
  if (detail.plans.length && !over(r)) want(detail.plans[detail.plans.length - 1].epoch);
}

function drawLosses() {
  const finite = losses.filter((l) => typeof l.loss === "number");
  const u = plot("loss", "", [finite.map((l) => l.iteration), finite.map((l) => l.loss)], () => ({
    scales: {x: {time: false}},
    axes: [axis({size: 30}), axis({size: 56})],
    series: [{}, {stroke: colour("c0"), width: 1.5, points: {show: false}}],
    hooks: {setCursor: [lossAt]},
  }));
  if (u && finite.length) u.setScale("x", {min: finite[0].iteration, max: Math.max(finite[0].iteration + 1, finite[finite.length - 1].iteration)});
  lossAt();
}

function lossAt() {
  const at = charts.loss && charts.loss.cursor.idx;
  if (!charts.loss || !charts.loss.data[0].length) return text($("lossat"), now && now.devices.some((d) => d.identity.startsWith("sim:")) ? "a simulated device computes none" : "none yet");
  const i = at ?? charts.loss.data[0].length - 1;
  text($("lossat"), "iteration " + charts.loss.data[0][i] + ": " + lossText(charts.loss.data[1][i]));
}

function drawLog() {
  const at = $("log"), bottom = at.scrollHeight - at.scrollTop - at.clientHeight < 30;
  text(at, log.join("\n"));
  if (bottom) at.scrollTop = at.scrollHeight;
}

function drawPlans() {
  $("history").hidden = detail.plans.length === 0;
  const have = new Set([...$("plans").children].map((d) => d.dataset.key));
  for (const p of detail.plans) {
    const key = p.at_ms + "-" + p.epoch;
    if (have.has(key)) continue;
    const more = p.since ? p.changes.length + (p.left || 0) + " changes since plan " + p.since : "the first that was seen here";
    const d = make("details", {"data-key": key}, make("summary", {}, make("b", {}, "Plan " + p.epoch), " · " + clock(p.at_ms) + " · " + (p.reason || "") + " ",
      make("span", {class: "note"}, [p.latencies, "arena " + bytes(p.arena_bytes), p.steps + " steps", p.swaps + " swaps", p.again + " again", more].join(", "))));
    if (p.changes.length) d.append(make("ul", {}, ...p.changes.map((c) => make("li", {}, (c.storage || c.op) + ": " + c.before + " → " + c.now)),
      p.left ? make("li", {}, "and " + p.left + " more") : ""));
    $("plans").prepend(d);
  }
}

// want loads the picture of a plan, once.
async function want(epoch) {
  if (wanted === name + " " + epoch) return;
  const mine = wanted = name + " " + epoch;
  let answer;
  try {
    const response = await fetch("jobs/" + encodeURIComponent(name) + "/plan");
    if (!response.ok) throw new Error((await response.json()).error);
    answer = await response.json();
  } catch (e) {
    if (wanted === mine) wanted = null; // tried again with the next event
    return;
  }
  if (wanted !== mine) return;
  picture = answer;
  if (measured && measured.epoch !== picture.epoch) measured = null;
  $("plan").hidden = false;
  drop("steps");
  drawPicture();
}

const laneRows = [["again", ["again"]], ["out", ["out"]], ["in", ["in"]], ["stall", ["stall"]]];

function drawPicture() {
  if (!picture || $("plan").hidden) return;
  const p = picture, n = p.after_bytes.length, x = [], before = [], after = [];
  for (let i = 0; i <= n; i++) { // a step reaches from i to i+1; the curve without a plan has the same width
    const at = Math.min(i, n - 1);
    x.push(i);
    after.push(p.after_bytes[at]);
    before.push(p.before_bytes.length ? p.before_bytes[Math.min(p.before_bytes.length - 1, Math.floor(at * p.before_bytes.length / n))] : null);
  }
  const stepped = uPlot.paths.stepped({align: 1}), peak = Math.max(...after), plain = Math.max(0, ...p.before_bytes);
  plot("steps", String(p.epoch), [x, before, after], () => ({
    height: 240,
    scales: {x: {time: false, range: (u, min, max) => [min, max]}, y: {range: () => [0, Math.max(peak, plain, p.arena_bytes) * 1.05]}},
    axes: [axis({size: 30, values: (u, v) => v.map((s) => Number.isInteger(s) ? s : "")}), axis({size: 62, splits: binary, values: (u, v) => v.map((b) => short(bytes(b)))})],
    series: [{}, {fill: colour("plain"), stroke: colour("plain"), width: 1, paths: stepped, points: {show: false}},
      {fill: colour("c0"), stroke: colour("c0"), width: 1, paths: stepped, points: {show: false}}],
    hooks: {draw: [drawSteps], setCursor: [stepAt]},
  }));
  text($("plannote"), "plan " + p.epoch + ": peak " + bytes(peak) + ", without a plan " + bytes(plain) + "; arena " + bytes(p.arena_bytes));
  keys($("plankeys"), [["plain", "without a plan"], ["c0", "with it"], ["again", "made again"], ["out", "copied out"], ["in", "copied in"], ["stall", "stall"]]);
  drawIteration();
  drawStorages();
}

function keys(list, named) {
  list.replaceChildren(...named.map(([c, label]) => make("li", {}, make("i", {colour: colour(c)}), label)));
}

function stepAt(u) {
  const i = u.cursor.idx;
  if (i == null || u.cursor.left < 0) return tip(null);
  const step = Math.min(i, picture.ops.length - 1), box = u.over.getBoundingClientRect();
  tip(box.left + u.cursor.left, box.top + u.cursor.top, "step " + (step + 1) + " " + picture.ops[step] + ": " + bytes(u.data[2][step]) + ", without a plan " + bytes(u.data[1][step]));
}

// slotOf is the place of a time among the steps: 2.5 is the middle of step 2. A wait counts with the step after it.
function slotOf(ends, at) {
  let low = 0, high = ends.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (ends[middle] < at) low = middle + 1; else high = middle;
  }
  if (low === ends.length) return low;
  const begin = low ? ends[low - 1] : 0;
  return low + Math.max(0, at - begin) / Math.max(1, ends[low] - begin);
}

// drawSteps draws the lanes below the chart of a plan, on its axis.
function drawSteps(u) {
  const dpr = devicePixelRatio || 1, left = u.bbox.left / dpr, width = u.bbox.width / dpr;
  lanes($("lanes"), laneRows.map(([label, kinds]) => ({label, bars: picture.bars.filter((b) => kinds.includes(b.lane)).map((b) =>
    ({...b, a: slotOf(picture.ends_ns, b.from_ns), z: slotOf(picture.ends_ns, b.to_ns)}))})), u.scales.x.min, u.scales.x.max, left, width, null);
}

let zoom = null;

function drawIteration() {
  if (!picture || $("plan").hidden) return;
  const fits = measured && measured.epoch === picture.epoch;
  const computes = ["compute", "again", "stall", "gate"];
  const row = (label, bars, kinds) => ({label, bars: bars.filter((b) => kinds.includes(b.lane)).map((b) => ({...b, a: b.from_ns, z: b.to_ns}))});
  const list = [];
  for (const [label, kinds] of [["compute", computes], ["out", ["out"]], ["in", ["in"]]]) {
    list.push(row(label + ", planned", picture.bars, kinds));
    if (fits) list.push(row("measured", measured.bars, kinds));
  }
  const all = list.flatMap((r) => r.bars), from = Math.min(0, ...all.map((b) => b.a)), to = Math.max(1, ...all.map((b) => b.z));
  const [a, z] = zoom || [from, to], canvas = $("iteration"), left = 108;
  canvas.full = [from, to]; canvas.shown = [a, z];
  lanes(canvas, list, a, z, left, canvas.parentNode.clientWidth - 28 - left - 10, span);
  const planned = "planned " + span(picture.iteration_ns) + ", of it " + span(picture.stall_ns) + " stall";
  text($("itnote"), fits ? planned + "; iteration " + measured.iteration + " measured " + span(measured.length_ns) : planned + "; none was measured under this plan yet");
  keys($("itkeys"), [["compute", "op"], ["again", "made again"], ["stall", "waits for a copy"], ["gate", "waits for memory of other jobs"], ["out", "copied out"], ["in", "copied in"]]);
}

// lanes draws rows of bars from place a to z into a canvas, at pixels from left on, with a time axis if ticks says what
// a place is called.
function lanes(canvas, list, a, z, left, width, ticks) {
  const dpr = devicePixelRatio || 1, each = 18, height = list.length * (each + 4) + (ticks ? 22 : 4), whole = canvas.parentNode.clientWidth - 28;
  if (whole <= 0 || width <= 0) return;
  canvas.width = whole * dpr; canvas.height = height * dpr; canvas.style.height = height + "px";
  const c = canvas.getContext("2d");
  c.scale(dpr, dpr);
  c.font = "11px system-ui, sans-serif";
  const at = (v) => left + (v - a) / (z - a) * width;
  canvas.list = list; canvas.place = (x) => a + (x - left) / width * (z - a); canvas.each = each + 4;
  list.forEach((r, i) => {
    const y = i * (each + 4);
    c.fillStyle = colour("dim"); c.textAlign = "right"; c.textBaseline = "middle";
    c.fillText(r.label, left - 8, y + each / 2);
    c.fillStyle = colour("lane");
    c.fillRect(left, y, width, each);
    for (const b of r.bars) {
      const x = Math.max(left, at(b.a)), end = Math.min(left + width, at(b.z));
      if (end < left || x > left + width) continue;
      c.fillStyle = palette(b.lane);
      c.fillRect(x, y, Math.max(0.5, end - x - (end - x > 3 ? 0.5 : 0)), each);
    }
  });
  if (!ticks) return;
  c.fillStyle = colour("dim"); c.textAlign = "center"; c.textBaseline = "top";
  const count = Math.max(2, Math.floor(width / 110)), raw = (z - a) / count, power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= raw);
  for (let v = Math.ceil(a / step) * step; v <= z; v += step) {
    const text = v < 0 ? "−" + ticks(-v) : ticks(v), x = at(v);
    c.fillRect(x, list.length * (each + 4), 1, 4);
    c.fillText(text, Math.min(x, left + width - 20), list.length * (each + 4) + 7);
  }
}

let shades = {};
const palette = (lane) => shades[lane] || (shades[lane] = colour(lane));

function tip(x, y, said) {
  const t = $("tip");
  if (x === null) { t.hidden = true; return; }
  t.hidden = false;
  text(t, said);
  t.style.left = Math.min(x + 12, innerWidth - t.offsetWidth - 8) + "px";
  t.style.top = Math.max(4, y - 34) + "px";
}

for (const id of ["lanes", "iteration"]) {
  const canvas = $(id);
  canvas.addEventListener("mousemove", (e) => {
    const row = canvas.list && canvas.list[Math.floor(e.offsetY / canvas.each)], v = canvas.place && canvas.place(e.offsetX);
    const hit = row && row.bars.find((b) => b.a <= v && v < b.z);
    if (!hit) return tip(null);
    const does = {compute: "", again: "again ", stall: "waits before ", gate: "waits for memory before ", out: "copies out ", in: "copies in "}[hit.lane];
    tip(e.clientX, e.clientY, does + hit.name + (hit.bytes ? ", " + bytes(hit.bytes) : "") + ", " + span(hit.to_ns - hit.from_ns) + " from " + span(Math.max(0, hit.from_ns)));
  });
  canvas.addEventListener("mouseleave", () => tip(null));
}
$("steps").addEventListener("mouseleave", () => tip(null));
let grip = null;
$("iteration").addEventListener("mousedown", (e) => { grip = e.offsetX; });
addEventListener("mouseup", (e) => {
  const canvas = $("iteration");
  if (grip === null) return;
  const box = canvas.getBoundingClientRect(), ends = [grip, e.clientX - box.left].map((x) => Math.min(canvas.full[1], Math.max(canvas.full[0], canvas.place(x)))).sort((a, b) => a - b);
  if (Math.abs(e.clientX - box.left - grip) > 5 && ends[1] > ends[0]) { zoom = ends; drawIteration(); }
  grip = null;
});
$("iteration").addEventListener("dblclick", () => { zoom = null; drawIteration(); });

// ---- storages

const columns = [["name", "Storage"], ["role", "Role"], ["bytes", "Size"], ["does", "What is done"], ["at_peak", "At the peak"], ["why", "Why"]];
const most = 500;

function drawStorages() {
  if (!picture) return;
  const words = $("search").value.toLowerCase().split(/\s+/).filter(Boolean);
  const list = picture.storages.filter((s) => words.every((w) => (s.name + " " + s.role + " " + s.does + " " + s.why).toLowerCase().includes(w)));
  const by = sorted.by, sign = sorted.up ? 1 : -1;
  list.sort((a, b) => sign * (typeof a[by] === "string" ? a[by].localeCompare(b[by]) : a[by] - b[by]) || a.name.localeCompare(b.name));
  const total = list.reduce((sum, s) => sum + s.bytes, 0);
  text($("found"), list.length + " of " + picture.storages.length + ", " + bytes(total) + (list.length > most ? "; the first " + most + " are shown" : ""));
  $("storages").tHead.rows[0].replaceChildren(...columns.map(([key, label]) => {
    const b = make("button", {type: "button", "data-by": key}, label + (by === key ? (sorted.up ? " ▲" : " ▼") : ""));
    return make("th", {class: key === "bytes" ? "n" : "", "aria-sort": by === key ? (sorted.up ? "ascending" : "descending") : "none"}, b);
  }));
  $("storages").tBodies[0].replaceChildren(...list.slice(0, most).map((s) => make("tr", {}, make("td", {}, s.name), make("td", {}, s.role),
    make("td", {class: "n"}, bytes(s.bytes)), make("td", {}, s.does), make("td", {}, s.at_peak ? "yes" : ""), make("td", {class: "note"}, s.why))));
}

$("storages").tHead.addEventListener("click", (e) => {
  const by = e.target.dataset.by;
  if (!by) return;
  sorted = {by, up: sorted.by === by ? !sorted.up : by !== "bytes" && by !== "at_peak"};
  drawStorages();
  $("storages").querySelector('[data-by="' + by + '"]').focus();
});
$("search").addEventListener("input", drawStorages);

// ---- buttons

async function post(path, body) {
  const said = $("said");
  said.className = "";
  text(said, "asking");
  let error = "";
  try {
    const response = await fetch(path, {method: "POST", body: JSON.stringify(body || {})});
    if (!response.ok) error = (await response.json()).error;
  } catch (e) {
    error = "the controller does not answer";
  }
  said.className = error ? "bad" : "";
  text(said, error || "done");
  return error;
}

for (const b of $("steer").querySelectorAll("[data-verb]")) {
  const label = b.textContent;
  b.onclick = () => {
    if (b.dataset.verb === "stop" && b.textContent === label) { // asked once more
      text(b, "Stop for good?");
      b.onblur = () => text(b, label);
      return;
    }
    text(b, label);
    post("jobs/" + encodeURIComponent(name) + "/" + b.dataset.verb);
  };
}
$("steer").querySelector("form").onsubmit = (e) => {
  e.preventDefault();
  post("jobs/" + encodeURIComponent(name) + "/priority", {priority: Number(e.target.priority.value)});
};
$("budget").onsubmit = async (e) => {
  e.preventDefault();
  const field = e.target.budget, error = await post("budget", {budget: field.value.trim().replace(/\s+/, "")});
  field.setCustomValidity(error);
  if (error) field.reportValidity(); else field.value = "";
};
$("budget").oninput = (e) => e.target.setCustomValidity("");

// ---- keys, colours, sizes

addEventListener("keydown", (e) => {
  if (e.ctrlKey || e.metaKey || e.altKey) return;
  const typing = e.target instanceof HTMLInputElement;
  if (e.key === "Escape" && typing) e.target.blur();
  else if (e.key === "Escape" && name) location.hash = "#/";
  else if (e.key === "/" && !typing && name && picture) { e.preventDefault(); $("search").focus(); }
});

function again() {
  shades = {};
  for (const key of Object.keys(charts)) drop(key);
  if (now) draw();
  if (detail) { drawJob(); drawPicture(); }
}
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
let resized = 0;
addEventListener("resize", () => { clearTimeout(resized); resized = setTimeout(again, 150); });
addEventListener("hashchange", () => { route(); $("main").focus({preventScroll: true}); scrollTo(0, 0); });
route();
})();
