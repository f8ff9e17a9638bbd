"use strict";
// The controls, the address, and the start.

const KEPT = ["suite", "tier", "kinds", "find", "sort", "descending", "curve", "task", "a", "b"];

function addressOfState() {
  const parts = new URLSearchParams();
  for (const name of KEPT) {
    const value = name === "kinds" ? (state.kinds.size === KINDS.length ? "" : [...state.kinds].join(",") || "none") : state[name];
    if (value !== "" && value !== false && !(name === "sort" && value === "rank")) parts.set(name, String(value));
  }
  return "#" + parts;
}

// Whatever an address says that the report does not have is left as it is.
function readAddress() {
  const text = location.hash.slice(1);
  if (!text.includes("=")) return false;
  const parts = new URLSearchParams(text);
  for (const name of ["find", "curve", "task", "a", "b", "suite"]) state[name] = parts.get(name) || "";
  state.tier = Number(parts.get("tier"));
  state.sort = COLUMNS.some((column) => column.id === parts.get("sort")) ? parts.get("sort") : "rank";
  state.descending = parts.get("descending") === "true";
  const kinds = parts.get("kinds");
  state.kinds = new Set(kinds ? kinds.split(",").filter((kind) => KINDS.includes(kind)) : KINDS);
  return true;
}

// Makes the state one that the report has.
function settle() {
  if (!suiteShown()) state.suite = report.suites[0].name;
  const suite = suiteShown();
  const filled = suite.tiers.filter((tier) => tier.ranking.length > 0);
  if (!suite.tiers.some((tier) => tier.evaluations === state.tier)) {
    const own = filled.filter((tier) => tier.ranking.some((entry) => entry.row_tier === tier.evaluations && tier.evaluations > 1));
    state.tier = (own[0] || filled[0] || suite.tiers[0]).evaluations;
  }
  if (!suite.tasks.some((task) => task.name === state.curve)) state.curve = "";
}

function showControls() {
  const suite = suiteShown();
  fillSelect(byId("suite"), report.suites.map((item) => ({value: item.name, text: item.name})), suite.name);
  fillSelect(byId("tier"), suite.tiers.map((tier) => ({value: tier.evaluations, text: count(tier.evaluations, "evaluation"),
    disabled: tier.ranking.length === 0})), state.tier);
  for (const box of document.querySelectorAll("#kinds input")) box.checked = state.kinds.has(box.value);
  if (byId("find").value !== state.find) byId("find").value = state.find;
  const tier = tierShown();
  const counting = tier.headroom.filter((item) => item.counts).length;
  byId("summary").replaceChildren(make("strong", {}, suite.name), ": ", foreign(suite.summary),
    `. Engine ${suite.engine}, revision ${suite.revision}, ${count(suite.seeds.length, "seed")}; at most ` +
    `${count(tier.evaluations, "evaluation")} and ${tier.seconds.toLocaleString("en")} s to decide; ` +
    `${counting} of ${count(suite.tasks.length, "task")} count in this tier.`);
  for (const name of document.querySelectorAll(".suite-name")) name.textContent = suite.name;
}

function show() {
  settle();
  showControls();
  showRanking();
  showTasks();
  showCurves();
  showSchedules();
  history.replaceState(null, "", addressOfState());
}

function listen() {
  byId("filters").addEventListener("submit", (event) => event.preventDefault());
  byId("suite").addEventListener("change", (event) => change({suite: event.target.value, tier: 0, curve: "", task: "", a: "", b: ""}));
  byId("tier").addEventListener("change", (event) => change({tier: Number(event.target.value)}));
  byId("find").addEventListener("input", (event) => change({find: event.target.value}));
  byId("curve-task").addEventListener("change", (event) => change({curve: event.target.value}));
  byId("schedule-task").addEventListener("change", (event) => change({task: event.target.value}));
  byId("schedule-a").addEventListener("change", (event) => change({a: event.target.value}));
  byId("schedule-b").addEventListener("change", (event) => change({b: event.target.value}));
  byId("swap").addEventListener("click", () => change({a: state.b, b: state.a}));
  byId("zoom").addEventListener("input", (event) => {
    state.zoom = Number(event.target.value);
    showSchedules();
  });
  for (const kind of KINDS) {
    byId("kinds").append(make("label", {}, make("input", {type: "checkbox", value: kind, checked: true, change: (event) => {
      const kinds = new Set(state.kinds);
      if (event.target.checked) kinds.add(kind);
      else kinds.delete(kind);
      change({kinds});
    }}), kind));
  }
  addEventListener("hashchange", () => {
    if (readAddress()) show();
  });
  let width = innerWidth;
  addEventListener("resize", () => {
    if (innerWidth === width) return;
    width = innerWidth;
    showCurves();
    showSchedules();
  });
  let closed = [];
  addEventListener("beforeprint", () => {
    closed = [...document.querySelectorAll("details:not([open])")];
    for (const details of closed) details.open = true;
  });
  addEventListener("afterprint", () => {
    for (const details of closed) details.open = false;
  });
}

function start() {
  byId("footer").textContent = `Made by DopplerGym ${report.code_version}. ${count(report.rows.length, "row")} in this file; ` +
    `intervals by ${report.bootstrap_samples.toLocaleString("en")} bootstrap samples.`;
  makeFaults();
  if (report.suites.length === 0) {
    for (const id of ["filters", "summary", "tasks", "curves", "schedules", "improvement"]) byId(id).hidden = true;
    byId("shown").textContent = "There are no verified rows yet.";
    return;
  }
  makeRankingHead();
  listen();
  readAddress();
  show();
}

start();
