"use strict";
// Every task with a bar for each agent: its score, from critical-path's, and the interval.

// Bars begin at 1, where critical-path is; an agent that is far off does not set the scale.
function taskDomain(scores, bound) {
  const known = scores.filter((score) => score.value !== null);
  const low = Math.min(1, bound ?? 1, ...known.map((score) => score.low));
  const high = Math.max(1, ...known.map((score) => score.high ?? score.value));
  return {low: low - 0.02, high: Math.max(1.02, Math.min(high, 1 + 2 * Math.max(0.1, 1 - low))) + 0.02};
}

function bar(score, domain, bound, kind) {
  const part = (value) => ((value ?? Infinity) - domain.low) / (domain.high - domain.low);
  const place = (value) => (100 * Math.min(1, Math.max(0, part(value)))).toFixed(2) + "%";
  const width = (from, to) => Math.abs(100 * (Math.min(1, Math.max(0, part(to))) - Math.min(1, Math.max(0, part(from)))));
  const picture = draw("svg", {class: "bar", "aria-hidden": "true"});
  const value = score.value ?? Infinity;
  picture.append(draw("rect", {class: "fill fill-" + KINDS.indexOf(kind), x: place(Math.min(1, value)), y: "25%", height: "50%",
                               width: Math.max(0.4, width(Math.min(1, value), Math.max(1, value))).toFixed(2) + "%"}));
  if (bound !== null) picture.append(draw("line", {class: "bound", x1: place(bound), x2: place(bound), y1: "0%", y2: "100%"}));
  picture.append(draw("line", {class: "one", x1: place(1), x2: place(1), y1: "0%", y2: "100%"}));
  if (score.value !== null && score.high !== score.low) {
    picture.append(draw("line", {class: "whisker", x1: place(score.low), x2: place(score.high), y1: "50%", y2: "50%"}));
    for (const end of [score.low, score.high]) {
      if (part(end) <= 1) picture.append(draw("line", {class: "whisker", x1: place(end), x2: place(end), y1: "30%", y2: "70%"}));
    }
  }
  if (part(score.value) > 1) picture.append(draw("text", {class: "beyond", x: "100%", y: "75%", "text-anchor": "end"}, "▸"));
  return picture;
}

function taskCard(task, headroom, entries) {
  const scored = entries.map((entry) => ({entry, score: entry.tasks.find((item) => item.task === task.name)}))
    .filter((item) => item.score);
  scored.sort((a, b) => (a.score.ratio.value ?? Infinity) - (b.score.ratio.value ?? Infinity));
  const isBoundProved = task.noise === 0 && suiteShown().engine === "simulator";
  const bound = isBoundProved && task.critical_path ? task.lower_bound / task.critical_path : null;
  const domain = taskDomain(scored.map((item) => item.score.ratio), bound);
  const facts = [count(task.nodes, "node"), count(task.devices, "device")];
  if (task.critical_path) facts.push("critical-path " + duration(task.critical_path, task.raw_costs));
  if (task.best_known) facts.push("best known " + ratio(task.best_known.ratio));
  if (headroom && headroom.headroom !== null) facts.push("headroom " + percent(headroom.headroom));
  const card = make("article", {class: "card"}, make("h3", {}, task.name),
    make("p", {class: "note"}, facts.join(" · ")));
  if (headroom && !headroom.counts) {
    card.append(make("p", {class: "flag"}, headroom.saturated ? "Saturated: does not count in this tier" :
      "Does not count: some agents may leave it out"));
  }
  const rows = scored.map(({entry, score}) => {
    const isOut = score.makespan.value === null;  // some of its decisions, at least
    const text = isOut ? "no memory" : score.ratio.value.toFixed(3);
    const exact = ratio(score.ratio.value) + " (" + ratio(score.ratio.low) + " to " + ratio(score.ratio.high) + "), " +
      duration(score.makespan.value, task.raw_costs);
    return make("tr", {title: exact}, make("th", {scope: "row"}, foreign(nameOf(entry))),
      make("td", {class: "picture"}, bar(score.ratio, domain, bound, entry.kind)),
      make("td", {class: "number"}, text));
  });
  card.append(make("table", {}, make("caption", {class: "hidden-text"}, "Makespan over critical-path's: " + task.name),
    make("tbody", {}, ...rows)));
  if (rows.length === 0) card.append(make("p", {class: "note"}, "No row that is shown has this task."));
  return card;
}

function showTasks() {
  const suite = suiteShown();
  const tier = tierShown();
  const entries = entriesShown();
  byId("tasks-note").textContent = "Makespan over critical-path's, best first; bars begin at 1. The dotted line is the lower bound where it is proved. " +
    "Headroom: how far the best agent that had learnt nothing beforehand is from the best known.";
  byId("kinds-legend").replaceChildren(...KINDS.filter((kind) => entries.some((entry) => entry.kind === kind))
    .map((kind) => make("span", {class: "kind kind-" + KINDS.indexOf(kind)}, kind)));
  byId("task-cards").replaceChildren(...suite.tasks.map((task) =>
    taskCard(task, tier.headroom.find((item) => item.task === task.name), entries)));
}
