"use strict";
// The ranking table, what a row says of itself, and what was refused.

// Orders ascending; what a column has no value for stays last in both directions.
const COLUMNS = [
  {id: "rank", title: "Rank", number: true, value: (entry) => entry.rank},
  {id: "agent", title: "Agent", value: (entry) => entry.agent},
  {id: "kind", title: "Kind", value: (entry) => entry.kind},
  {id: "score", title: "Score", number: true, value: (entry) => scoreOf(entry).value},
  {id: "gap", title: "Over bound", number: true, value: (entry) => entry.gap},
  {id: "evaluations", title: "Evaluations", number: true, value: (entry) => entry.evaluations},
  {id: "seconds", title: "Decided in", number: true, value: (entry) => entry.seconds},
  {id: "learnt", title: "Learnt on", number: true, value: (entry) => entry.training.tasks.length},
];

const scoreOf = (entry) => entry.score || entry.score_of_all;

function compare(a, b) {
  if (typeof a === "string") return a.localeCompare(b, "en", {numeric: true, sensitivity: "base"});
  return a - b;
}

function sorted(entries) {
  const column = COLUMNS.find((item) => item.id === state.sort);
  const known = entries.filter((entry) => column.value(entry) !== null);
  const unknown = entries.filter((entry) => column.value(entry) === null);
  known.sort((a, b) => (state.descending ? -1 : 1) * compare(column.value(a), column.value(b)));
  return known.concat(unknown);
}

function makeRankingHead() {
  const row = make("tr", {role: "row"});
  for (const column of COLUMNS) {
    const sort = () => change({
      sort: column.id, descending: state.sort === column.id && !state.descending});
    row.append(make("th", {scope: "col", role: "columnheader", "data-column": column.id,
                           class: column.number ? "number" : undefined},
                    make("button", {type: "button", click: sort}, column.title)));
  }
  row.append(make("th", {scope: "col", role: "columnheader", class: "last"},
                  make("span", {class: "hidden-text"}, "Schedule")));
  byId("ranking-table").tHead.replaceChildren(row);
}

// A picture of intervals on one scale: the value a dot, its interval a line.
function intervalPicture(interval, domain) {
  const place = (value) => {
    const part = ((value ?? Infinity) - domain.low) / (domain.high - domain.low || 1);
    return (4 + 92 * Math.min(1, Math.max(0, part))).toFixed(2) + "%";
  };
  const picture = draw("svg", {class: "interval", "aria-hidden": "true"});
  if (interval.value === null || interval.value > domain.high) {
    picture.append(draw("line", {x1: "0%", x2: "100%", y1: "50%", y2: "50%", class: "track"}),
      draw("text", {x: "100%", y: "85%", "text-anchor": "end", class: "beyond"}, "▸"));
    return picture;
  }
  picture.append(
    draw("line", {x1: "0%", x2: "100%", y1: "50%", y2: "50%", class: "track"}),
    draw("line", {x1: place(interval.low), x2: place(interval.high), y1: "50%", y2: "50%", class: "range"}),
    draw("circle", {cx: place(interval.value), cy: "50%", r: 4, class: "dot"}));
  return picture;
}

// Of most entries; one that is far off must not press the others together.
function scoreDomain(entries) {
  const scores = entries.map(scoreOf).filter((score) => score.value !== null);
  if (scores.length === 0) return {low: 0, high: 1};
  const low = Math.min(...scores.map((score) => score.low));
  const ends = scores.map((score) => score.high ?? score.value).sort((a, b) => a - b);
  const most = ends[Math.floor(0.75 * (ends.length - 1))];
  return {low, high: Math.min(ends[ends.length - 1], most + 0.25 * (most - low) + 0.01)};
}

function detailTerms(entry) {
  const row = rowOf.get(entry.file);
  const terms = [];
  const add = (name, ...values) => terms.push(make("dt", {}, name), make("dd", {}, ...values));
  if (entry.unranked) add("No rank", entry.unranked);
  if (entry.authors.length) add("Authors", foreign(entry.authors.join(", ")));
  if (entry.link) add("Link", link(entry.link, entry.link));
  if (entry.note) add("Note", foreign(entry.note));
  add("File", make("code", {}, entry.file));
  if (entry.row_tier !== state.tier) add("Row", "of the tier of " + count(entry.row_tier, "evaluation"));
  add("Over all tasks", ratio(entry.score_of_all.value));
  const parameters = Object.entries(row.parameters);
  if (parameters.length) {
    add("Parameters", make("code", {}, parameters.map(([name, value]) => name + "=" + value).join(", ")));
  }
  if (entry.training.tasks.length || entry.training.evaluations) {
    add("Learnt", count(entry.training.evaluations, "evaluation") + ", " + duration(entry.training.seconds) +
      (entry.training.on_suite_tasks ? ", also on tasks of this suite" : ""),
    make("details", {}, make("summary", {}, count(entry.training.tasks.length, "task")),
      foreign(entry.training.tasks.join(", "))));
  }
  const hardware = [row.hardware.processor, row.hardware.cores && count(row.hardware.cores, "core"),
    row.hardware.memory && (row.hardware.memory / 1e9).toFixed(1) + " GB", row.hardware.accelerator];
  if (hardware.some(Boolean)) add("Made on", foreign(hardware.filter(Boolean).join(", ")));
  if (entry.command) add("Command", make("code", {}, entry.command));
  if (entry.code_version) add("Version", foreign(entry.code_version));
  return terms;
}

const openRows = new Set();  // files of the rows whose details are shown

function entryRows(entry, domain, position) {
  const detailsId = "details-" + position;
  const isOpen = openRows.has(entry.file);
  const details = make("tr", {id: detailsId, class: "details", hidden: !isOpen, role: "row"},
    make("td", {colspan: COLUMNS.length + 1, role: "cell"}, make("dl", {}, ...detailTerms(entry))));
  const toggle = make("button", {
    type: "button", class: "agent", "aria-expanded": isOpen, "aria-controls": detailsId,
    click: () => {
      details.hidden = !details.hidden;
      toggle.setAttribute("aria-expanded", String(!details.hidden));
      if (details.hidden) openRows.delete(entry.file);
      else openRows.add(entry.file);
    }}, foreign(entry.agent));
  const cell = (column, ...children) => {
    const definition = COLUMNS.find((item) => item.id === column);
    return make("td", {role: "cell", "data-title": definition.title, "data-column": column,
                       class: definition.number ? "number" : undefined}, ...children);
  };
  const score = scoreOf(entry);
  const scoreCell = cell("score",
    make("span", {class: "value"}, ratio(score.value)), " ",
    make("span", {class: "range-text"}, score.value === null ? "" : ratio(score.low) + " – " + ratio(score.high)),
    intervalPicture(score, domain));
  if (!entry.score) scoreCell.append(make("span", {class: "note"}, "no task counts"));
  const row = make("tr", {role: "row", "data-file": entry.file, "data-kind": entry.kind},
    cell("rank", entry.rank === null ? "–" : String(entry.rank)),
    cell("agent", toggle, entry.row_tier === state.tier ? "" : make("span", {class: "note"}, "row of tier " + entry.row_tier.toLocaleString("en"))),
    cell("kind", make("span", {class: "kind kind-" + KINDS.indexOf(entry.kind)}, entry.kind)),
    scoreCell,
    cell("gap", percent(entry.gap)),
    cell("evaluations", evaluations(entry.evaluations)),
    cell("seconds", duration(entry.seconds)),
    cell("learnt", entry.training.tasks.length ? count(entry.training.tasks.length, "task") : "nothing"),
    make("td", {role: "cell", class: "last"}, make("button", {
      type: "button", class: "open-schedule", "aria-label": "Schedule of " + entry.agent,
      click: () => openSchedule(entry.file)}, "Schedule")));
  return [row, details];
}

function showRanking() {
  const all = tierShown().ranking;
  const entries = sorted(entriesShown());
  for (const head of byId("ranking-table").tHead.rows[0].cells) {
    if (!head.dataset.column) continue;
    const direction = state.descending ? "descending" : "ascending";
    head.setAttribute("aria-sort", head.dataset.column === state.sort ? direction : "none");
  }
  const domain = scoreDomain(all);
  byId("ranking-table").tBodies[0].replaceChildren(
    ...entries.flatMap((entry, position) => entryRows(entry, domain, position)));
  byId("shown").textContent = all.length === 0 ? "This tier has no rows yet." :
    entries.length === all.length ? count(all.length, "row") :
      entries.length + " of " + count(all.length, "row");
  showImprovement(all);
}

function showImprovement(entries) {
  const tier = tierShown();
  const head = make("tr", {}, make("td"));
  entries.forEach((entry) => head.append(make("th", {scope: "col"}, make("div", {}, foreign(nameOf(entry))))));
  const body = entries.map((entry, i) => make("tr", {}, make("th", {scope: "row"}, foreign(nameOf(entry))),
    ...tier.improvement[i].map((value, j) => {
      if (i === j) return make("td", {class: "number"}, "–");
      const cell = make("td", {class: "number"}, value.toFixed(2));
      cell.style.setProperty("--part", (100 * value).toFixed(0) + "%");
      return cell;
    })));
  byId("improvement").hidden = entries.length < 2;
  byId("improvement").querySelector("table").replaceChildren(make("thead", {}, head), make("tbody", {}, ...body));
}

// Rows that do not hold and agents that failed: the same for every suite.
function makeFaults() {
  const refused = byId("refused");
  refused.hidden = report.refused.length === 0;
  refused.querySelector("summary").textContent = count(report.refused.length, "file") + " refused";
  refused.querySelector("ul").replaceChildren(...report.refused.map((row) => make("li", {},
    make("code", {}, row.file), make("ul", {}, ...row.faults.map((fault) => make("li", {}, foreign(fault)))))));
  const failed = byId("failed");
  failed.hidden = report.failed.length === 0;
  failed.querySelector("summary").textContent = count(report.failed.length, "agent") + " failed";
  failed.querySelector("ul").replaceChildren(...report.failed.map((row) => make("li", {},
    foreign(row.agent), ", " + row.suite + ", tier " + row.tier + ", ", foreign(row.task), ": ", foreign(row.reason))));
}
