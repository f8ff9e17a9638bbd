"use strict";
// Elements, numbers, and what is shown. Texts of rows are set as text, never as markup.

const report = JSON.parse(document.getElementById("report").textContent);
const byId = (id) => document.getElementById(id);
const KINDS = ["heuristic", "search", "learned", "other"];
const rowOf = new Map(report.rows.map((row) => [row.file, row]));

// What is shown: kept in the address behind '#', so that it can be sent to others.
const state = {
  suite: "", tier: 0, kinds: new Set(KINDS), find: "",
  sort: "rank", descending: false,
  curve: "", task: "", a: "", b: "", zoom: 0,
};

function setAttributes(element, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null) continue;
    if (name.startsWith("aria-")) element.setAttribute(name, String(value));
    else if (value === false) continue;
    else if (typeof value === "function") element.addEventListener(name, value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
}

// An element of the page; children are elements or texts.
function make(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  setAttributes(element, attributes);
  element.append(...children);
  return element;
}

function draw(name, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  setAttributes(element, attributes);
  element.append(...children);
  return element;
}

// Only addresses of the web become links; anything else stays the text that it is.
function link(text, address) {
  let url = null;
  try {
    url = new URL(address);
  } catch {
    return text;
  }
  if (!/^https?:\/\//i.test(address) || !["http:", "https:"].includes(url.protocol)) return text;
  return make("a", {href: url.href, rel: "noopener noreferrer nofollow ugc"}, text);
}

// Text of a row, which may be in any script and direction.
const foreign = (text) => make("bdi", {}, text);

function count(n, thing) {
  return n.toLocaleString("en") + " " + thing + (n === 1 ? "" : "s");
}

function evaluations(n) {
  return n >= 100 ? Math.round(n).toLocaleString("en") : String(Number(n.toPrecision(3)));
}

// Three or four significant digits with a unit; raw numbers of published graphs have none.
function duration(value, raw = false) {
  if (value === null || !Number.isFinite(value)) return "out of memory";
  if (raw) return value.toPrecision(4);
  if (value === 0) return "0 s";
  const units = [[1, "s"], [1e-3, "ms"], [1e-6, "µs"], [1e-9, "ns"]];
  const [scale, unit] = units.find(([size]) => Math.abs(value) >= size) || units[3];
  const digits = value / scale;
  return (digits >= 1000 ? Math.round(digits).toLocaleString("en") : digits.toPrecision(4)) + " " + unit;
}

const ratio = (value) => (value === null ? "out of memory" : value.toFixed(4));
const percent = (value) => (value === null ? "–" : (100 * value).toFixed(1) + " %");

// --- what of the report is shown ---

const suiteShown = () => report.suites.find((suite) => suite.name === state.suite);
const tierShown = () => suiteShown().tiers.find((tier) => tier.evaluations === state.tier);

// Entries of the tier that the filters let pass, by rank.
function entriesShown() {
  const wanted = state.find.trim().toLowerCase();
  return tierShown().ranking.filter((entry) => state.kinds.has(entry.kind) &&
    (wanted === "" || entry.agent.toLowerCase().includes(wanted)));
}

// What sets apart rows of one agent by several authors.
function nameOf(entry) {
  const same = tierShown().ranking.filter((other) => other.agent === entry.agent);
  if (same.length < 2) return entry.agent;
  return entry.agent + " (" + (entry.authors.join(", ") || "no authors") + ")";
}

function fillSelect(select, options, value) {
  select.replaceChildren(...options.map((option) =>
    make("option", {value: option.value, disabled: option.disabled}, option.text)));
  select.value = value;
}

// Tells the page that the state has changed.
function change(values) {
  Object.assign(state, values);
  show();
}
