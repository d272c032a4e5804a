// The dashboard: reads what the API answers with the visitor's key, and shows it; every text goes in as text.
"use strict";

const $ = (id) => document.getElementById(id);
const KEY = "reticent-key";
const LINES = 8; // coordinates in one chart
let key = "";
let serial = 0; // of the view on show: answers for an earlier one are dropped
let stream = null;

// -- small pieces of page

function make(name, options, ...children) {
  const node = document.createElement(name);
  for (const [attribute, value] of Object.entries(options || {})) {
    if (value !== null && value !== undefined && value !== false) node.setAttribute(attribute, value === true ? "" : value);
  }
  for (const child of children.flat()) {
    if (child !== null && child !== undefined) node.append(child);
  }
  return node;
}

function svg(name, attributes, text) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [attribute, value] of Object.entries(attributes)) node.setAttribute(attribute, value);
  if (text !== undefined) node.textContent = text;
  return node;
}

function number(x, digits = 6) {
  if (x === null || x === undefined) return "–";
  if (x !== 0 && Math.abs(x) < 1e-4) return Number(Number(x).toPrecision(digits)).toExponential();
  return Number(x).toLocaleString("en-US", { maximumSignificantDigits: digits });
}
const listed = (decision) => (Array.isArray(decision) ? decision : [decision]);

function shown(decision, most = 6) {
  const all = listed(decision);
  const some = all.slice(0, most).map((x) => number(x)).join(", ");
  return all.length > most ? `${some}, … (${all.length} numbers)` : some;
}

function facts(pairs, kind = null) {
  return make("dl", { class: kind }, pairs.filter((pair) => pair).map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, value))));
}

// -- asking

async function ask(path, options = {}) {
  const answer = await fetch(path, { ...options, headers: { Authorization: `Bearer ${key}`, ...(options.headers || {}) }, cache: "no-store" });
  if (answer.ok) return answer.json();
  let problem = {};
  try { problem = await answer.json(); } catch { problem = { title: answer.statusText }; }
  const error = new Error(problem.detail || problem.title || `status ${answer.status}`);
  error.status = answer.status;
  throw error;
}

function tell(state, text) {
  const live = $("live");
  live.className = `live ${state}`;
  live.textContent = text;
}

// Server-sent events by fetch, since an EventSource cannot carry a key.
async function listen() {
  if (stream) stream.abort();
  const mine = (stream = new AbortController());
  let pause = 500;
  while (!mine.signal.aborted) {
    try {
      const answer = await fetch("/v1/events", { headers: { Authorization: `Bearer ${key}` }, signal: mine.signal, cache: "no-store" });
      if (answer.status === 401 || answer.status === 403) return forget("The key is not accepted any more.");
      if (!answer.ok) throw new Error(`status ${answer.status}`);
      tell("on", "live");
      refresh();
      pause = 500;
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      let rest = "";
      for (;;) {
        const { value, done } = await reader.read();
        if (done) break;
        const parts = (rest + value).split("\n\n");
        rest = parts.pop();
        for (const part of parts) {
          const line = part.split("\n").find((one) => one.startsWith("data: "));
          if (line) changed(JSON.parse(line.slice(6)));
        }
      }
      throw new Error("the stream ended");
    } catch (error) {
      if (mine.signal.aborted) return;
      tell("off", "not connected, trying again");
      await new Promise((done) => setTimeout(done, pause));
      pause = Math.min(pause * 2, 10000);
    }
  }
}

let due = null;
function changed(event) {
  const here = where();
  if (here.id && here.id !== event.id) return;
  if (here.key !== undefined && event.key !== undefined && here.key !== event.key) return;
  // Many changes within a moment are one look.
  if (due === null) due = setTimeout(() => { due = null; refresh(true); }, 150);
}

// -- views

function where() {
  const parts = location.hash.replace(/^#\/?/, "").split("/").map(decodeURIComponent);
  if (parts[0] === "learners" && parts[1]) return { kind: "learner", id: parts[1] };
  if (parts[0] === "fleets" && parts[1]) return { kind: "fleet", id: parts[1], key: parts[2] === "keys" && parts[3] !== undefined ? parts[3] : undefined };
  return {};
}

const path = (one) => `/v1/${one.kind}s/${encodeURIComponent(one.id)}${one.key !== undefined ? `/keys/${encodeURIComponent(one.key)}` : ""}`;

async function refresh(live = false) {
  if (!key) return;
  const mine = ++serial;
  const at = where();
  try {
    const parts = at.id === undefined ? await overview() : at.kind === "fleet" && at.key === undefined ? await fleet(at) : await one(at);
    if (mine !== serial) return;
    const before = $("view").dataset.decision;
    const search = document.activeElement && document.activeElement.id === "search" ? document.activeElement.value : null;
    $("view").replaceChildren(...parts.nodes);
    $("view").dataset.decision = parts.mark;
    if (search !== null && $("search")) { $("search").value = search; $("search").focus(); }
    if (live && before !== parts.mark) document.querySelectorAll(".value").forEach((node) => node.classList.add("changed"));
    document.title = parts.title;
  } catch (error) {
    if (mine !== serial) return;
    if (error.status === 401) return forget(error.message);
    $("view").replaceChildren(make("h1", {}, "That did not work"), make("p", { class: "wrong" }, error.message), make("p", {}, make("a", { href: "#/" }, "Back to all")));
  }
}

async function overview() {
  const [learners, fleets, ledger] = await Promise.all([ask("/v1/learners"), ask("/v1/fleets"), ask("/v1/ledger")]);
  const decisions = await Promise.all(learners.learners.map((each) => ask(`${path(each)}/decision`).catch((error) => ({ trouble: error.message }))));
  const nodes = [make("h1", {}, "Learners and fleets")];
  const cards = learners.learners.map((each, i) => card(each, decisions[i])).concat(fleets.fleets.map((each) => card(each, null)));
  if (cards.length) nodes.push(make("ul", { class: "cards" }, cards));
  else nodes.push(make("p", {}, "Nothing has been made yet. An administrator makes a learner like this:"), make("pre", {}, example()));
  nodes.push(...books(ledger));
  return { nodes, title: "reticent", mark: JSON.stringify(decisions.map((each) => each.version)) };
}

function example() {
  return `curl ${location.origin}/v1/learners -H "Authorization: Bearer $KEY" -H "Idempotency-Key: first" \\
  --json '{"id": "p95", "name": "Latency, 95th percentile", "spec": {"learner": "PrivateQuantile", "level": 0.95, "low": 0, "high": 1000, "epsilon": 1}}'`;
}

function card(each, decision) {
  const link = make("a", { href: `#/${each.kind}s/${encodeURIComponent(each.id)}` }, each.name);
  const head = make("div", {}, link, make("span", { class: "tag" }, each.state === "live" ? each.kind : `${each.kind}, ${each.state}`));
  const parts = [head];
  if (decision) parts.push(decision.trouble ? make("p", { class: "wrong" }, decision.trouble) : make("p", { class: "value" }, shown(decision.decision, 3)));
  parts.push(facts([
    decision && !decision.trouble ? ["changes so far", number(decision.version)] : null,
    ["system", each.promise.system],
    ["promise", each.promise.epsilon === null ? "no privacy claim" : `epsilon ${number(each.promise.epsilon)}, delta ${number(each.promise.delta)}`],
    each.population ? ["charged to", each.population] : null,
  ]));
  return make("li", { class: "card" }, parts);
}

async function one(at) {
  const base = path(at);
  const [about, decision, history, spent] = await Promise.all([
    ask(`/v1/${at.kind}s/${encodeURIComponent(at.id)}`), ask(`${base}/decision`), ask(`${base}/history?limit=500`), ask(`${base}/spent`),
  ]);
  const title = at.key === undefined ? about.name : at.key;
  const up = at.key === undefined ? make("a", { href: "#/" }, "All learners and fleets") : make("a", { href: `#/fleets/${encodeURIComponent(at.id)}` }, about.name);
  const left = make("div", {},
    make("p", { class: "note" }, listed(decision.decision).length > 1 ? "The decision in play" : "In play"),
    make("p", { class: "value" }, shown(decision.decision)),
    make("p", { class: "note" }, decision.version === 0 ? "It has not changed yet." : `Changed ${number(decision.version)} ${decision.version === 1 ? "time" : "times"}, the last time at round ${number(decision.since)}.`),
    chart(history));
  const right = make("div", {}, promise(about, spent), facts(about.plan.rows, "plan"));
  return {
    nodes: [make("p", { class: "note" }, up), make("h1", {}, title, make("span", { class: "tag" }, about.state)), make("div", { class: "two" }, left, right)],
    title: `${title} – reticent`, mark: JSON.stringify([decision.decision, decision.version]),
  };
}

async function fleet(at) {
  const search = $("search") ? $("search").value : "";
  const [about, keys] = await Promise.all([ask(path(at)), ask(`${path(at)}/keys?limit=200&prefix=${encodeURIComponent(search)}`)]);
  const box = make("input", { id: "search", type: "search", placeholder: "Keys that begin with …", value: search, "aria-label": "Keys that begin with" });
  let timer = null;
  box.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(() => refresh(), 250); });
  const rows = keys.keys.map((each) => make("tr", {},
    make("td", {}, make("a", { href: `#/fleets/${encodeURIComponent(at.id)}/keys/${encodeURIComponent(each.key)}` }, each.key)),
    make("td", { class: "number" }, shown(each.decision, 3)), make("td", { class: "number" }, number(each.version))));
  const head = make("tr", {}, make("th", {}, "key"), make("th", { class: "number" }, "decision"), make("th", { class: "number" }, "changes"));
  const left = make("div", {}, box, rows.length ? make("div", { class: "scroll" }, make("table", {}, make("thead", {}, head), make("tbody", {}, rows))) : make("p", {}, "No such keys yet."),
    keys.more ? make("p", { class: "note" }, `The first ${number(keys.keys.length)}; type to find others.`) : null);
  const right = make("div", {}, promise(about, null), facts(about.plan.rows, "plan"));
  return {
    nodes: [make("p", { class: "note" }, make("a", { href: "#/" }, "All learners and fleets")), make("h1", {}, about.name, make("span", { class: "tag" }, `fleet, ${about.state}`)), make("div", { class: "two" }, left, right)],
    title: `${about.name} – reticent`, mark: JSON.stringify(keys.keys.map((each) => each.version)),
  };
}

function promise(about, spent) {
  const lines = about.promise.words.map((line) => make("p", {}, line));
  if (spent && spent.epsilon !== null) lines.push(make("p", {}, `Spent so far: epsilon ${number(spent.epsilon, 4)} of ${number(about.promise.epsilon, 4)}, at delta ${number(spent.delta)}.`), bar(spent.epsilon / about.promise.epsilon, "epsilon spent"));
  return make("section", {}, make("h2", {}, "What is promised"), make("div", { class: "promise" }, lines));
}

function bar(part, label) {
  const percent = Math.round(100 * Math.min(Math.max(part, 0), 1));
  const inner = make("span", {});
  inner.style.width = `${percent}%`;
  return make("div", { class: "bar", role: "meter", "aria-label": label, "aria-valuemin": 0, "aria-valuemax": 100, "aria-valuenow": percent }, inner);
}

function books(ledger) {
  if (!ledger.populations.length) return [make("h2", {}, "Ledger"), make("p", { class: "note" }, ledger.configured ? "The ledger has no populations yet." : "No ledger is configured: nothing adds up what several learners cost the same people.")];
  const rows = ledger.entries.map((each) => make("tr", {}, make("td", { class: "number" }, number(each.number)), make("td", {}, each.time.slice(0, 19).replace("T", " ")), make("td", {}, each.population), make("td", {}, each.what), make("td", {}, each.note)));
  return [
    make("h2", {}, "Ledger"),
    make("ul", { class: "cards" }, ledger.populations.map((each) => make("li", { class: "card" },
      make("strong", {}, each.name), bar(each.spent, `budget of ${each.name} spent`),
      make("p", { class: "note" }, `${Math.round(100 * (1 - Math.min(each.spent, 1)))}% of the budget is left. Everything together costs one ${each.unit} at most epsilon ${number(each.epsilon)} at delta ${number(each.delta)}${each.window ? ` within any ${number(each.window)} days` : ""}.`),
      facts([["entries", number(each.entries)], ["together, composed tightly", `epsilon ${number(each.total_epsilon, 4)}`], ["a pure release that still fits", `epsilon ${number(each.left_epsilon, 4)}`]])))),
    rows.length ? make("div", { class: "scroll" }, make("table", { class: "wide" }, make("thead", {}, make("tr", {}, ["entry", "time (UTC)", "population", "what", "note"].map((name, i) => make("th", i ? {} : { class: "number" }, name)))), make("tbody", {}, rows))) : null,
  ].filter((node) => node);
}

// A staircase: the decision from each change to the next.
function chart(history) {
  const wide = window.innerWidth > 560;
  const [width, height, left, bottom, top] = wide ? [680, 300, 64, 34, 12] : [360, 260, 52, 34, 12];
  const points = history.decisions.map(listed);
  const lines = Math.min(points[0].length, LINES);
  const all = points.flatMap((point) => point.slice(0, lines));
  let [low, high] = [Math.min(...all), Math.max(...all)];
  if (low === high) { const pad = Math.abs(low) / 10 || 1; low -= pad; high += pad; }
  const first = history.rounds[0];
  const last = Math.max(history.until ?? history.rounds[history.rounds.length - 1], first + 1);
  const x = (round) => left + ((round - first) / (last - first)) * (width - left - 12);
  const y = (value) => top + (1 - (value - low) / (high - low)) * (height - top - bottom);
  const box = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `The decision over rounds ${first} to ${last}, with ${points.length - 1} changes` });
  for (const value of ticks(low, high, 5)) {
    box.append(svg("line", { class: "grid", x1: left, x2: width - 12, y1: y(value), y2: y(value) }), svg("text", { x: left - 8, y: y(value) + 4, "text-anchor": "end" }, number(value, 4)));
  }
  const across = ticks(first, last, wide ? 6 : 3).filter((round) => Number.isInteger(round));
  for (const round of across) box.append(svg("text", { x: x(round), y: height - 12, "text-anchor": "middle" }, number(round)));
  for (let i = 0; i < lines; i++) {
    let way = "";
    points.forEach((point, k) => {
      const end = k + 1 < points.length ? history.rounds[k + 1] : last;
      way += `${k ? "V" : `M${x(history.rounds[0])},`}${y(point[i])}H${x(end)}`;
    });
    const line = svg("path", { class: "step", d: way });
    line.style.stroke = `var(--c${i})`;
    box.append(line);
    if (points.length <= 60) {
      points.slice(1).forEach((point, k) => {
        const dot = svg("circle", { class: "dot", cx: x(history.rounds[k + 1]), cy: y(point[i]), r: 3.5 });
        dot.style.fill = `var(--c${i})`;
        dot.append(svg("title", {}, `round ${number(history.rounds[k + 1])}: ${number(point[i])}`));
        box.append(dot);
      });
    }
  }
  const legend = lines > 1 ? make("ul", { class: "keys" }, Array.from({ length: lines }, (_, i) => {
    const sample = make("i");
    sample.style.background = `var(--c${i})`;
    return make("li", {}, sample, `coordinate ${i + 1}`);
  })) : null;
  const more = points[0].length > lines ? make("p", { class: "note" }, `The first ${lines} of ${points[0].length} coordinates.`) : null;
  const cut = history.more ? make("p", { class: "note" }, `The last ${number(points.length - 1)} changes.`) : null;
  const rows = points.map((point, k) => [history.rounds[k], point]).slice(-10).reverse();
  const table = make("div", { class: "scroll" }, make("table", {}, make("thead", {}, make("tr", {}, make("th", { class: "number" }, "from round"), make("th", {}, "decision"))), make("tbody", {}, rows.map(([round, point]) => make("tr", {}, make("td", { class: "number" }, number(round)), make("td", {}, shown(point)))))));
  return make("div", {}, make("h2", {}, "Over the rounds"), make("div", { class: "chart" }, box, legend), more, cut, make("h2", {}, "Last changes"), table);
}

function ticks(low, high, count) {
  const raw = (high - low) / count;
  const unit = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((factor) => factor * unit).find((size) => size >= raw);
  const found = [];
  for (let at = Math.ceil(low / step); at * step <= high + step / 1e6; at++) found.push(Number((at * step).toPrecision(12)));
  return found;
}

// -- coming and going

function forget(message) {
  key = "";
  sessionStorage.removeItem(KEY);
  if (stream) stream.abort();
  serial++;
  tell("", "not connected");
  $("view").replaceChildren();
  $("gate").hidden = false;
  $("out").hidden = true;
  $("wrong").textContent = message || "";
}

function begin() {
  $("gate").hidden = true;
  $("out").hidden = false;
  $("wrong").textContent = "";
  sessionStorage.setItem(KEY, key);
  listen();
}

function start() {
  // A key behind "#key=" never leaves the browser, and does not stay in the address.
  const given = /^#key=(.+)$/.exec(location.hash);
  if (given) history.replaceState(null, "", "#/");
  key = given ? decodeURIComponent(given[1]) : sessionStorage.getItem(KEY) || "";
  window.addEventListener("hashchange", () => refresh());
  $("out").addEventListener("click", () => forget(""));
  $("enter").addEventListener("submit", (event) => {
    event.preventDefault();
    key = $("key").value.trim();
    $("key").value = "";
    begin();
  });
  if (key) begin();
  else forget("");
}

start();
