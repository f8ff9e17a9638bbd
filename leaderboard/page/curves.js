"use strict";
// The best makespan so far against evaluations and against seconds.

const OUT_OF_MEMORY = report.out_of_memory_score;
const hiddenCurves = new Set();  // files of rows

function interquartileMean(values) {
  const ordered = [...values].sort((a, b) => a - b);
  const cut = Math.floor(ordered.length / 4);
  const kept = ordered.slice(cut, ordered.length - cut);
  return kept.reduce((sum, value) => sum + value, 0) / kept.length;
}

const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;

// The steps of every decision of a row on these tasks: [[x, score], ...] each.
function stepsOf(file, tasks, isSeconds) {
  const steps = [];
  for (const {task, runs} of rowOf.get(file).tasks) {
    const place = tasks.find((item) => item.name === task);
    if (!place) continue;
    const reference = place.critical_path || place.lower_bound;
    for (const run of runs) {
      steps.push(run.curve.map(([used, seconds, makespan]) =>
        [isSeconds ? Math.max(seconds, 1e-6) : used,
          typeof makespan === "number" ? makespan / reference : OUT_OF_MEMORY]));
    }
  }
  return steps;
}

// Points where every decision has a value, at most 200, which the mean of the steps goes through.
function curveOf(steps, average) {
  if (steps.length === 0) return [];
  const begin = Math.max(...steps.map((points) => points[0][0]));
  let places = [...new Set(steps.flat().map(([x]) => x).filter((x) => x > begin))].sort((a, b) => a - b);
  const most = 200;
  if (places.length > most) {
    places = Array.from({length: most}, (_, i) => places[Math.floor(i * (places.length - 1) / (most - 1))]);
  }
  const at = steps.map(() => 0);
  return [begin, ...places].map((x) => [x, average(steps.map((points, i) => {
    while (at[i] + 1 < points.length && points[at[i] + 1][0] <= x) ++at[i];
    return points[at[i]][1];
  }))]);
}

function curveTasks() {
  const suite = suiteShown();
  if (state.curve !== "") return suite.tasks.filter((task) => task.name === state.curve);
  const headroom = tierShown().headroom;
  const counting = suite.tasks.filter((task) => headroom.find((item) => item.task === task.name)?.counts);
  return counting.length ? counting : suite.tasks;
}

function ticksOf(low, high) {
  const decades = [];
  for (let e = Math.ceil(Math.log10(low) - 1e-9); e <= Math.floor(Math.log10(high) + 1e-9); ++e) decades.push(10 ** e);
  const step = Math.max(1, Math.ceil(decades.length / 6));
  return decades.filter((_, i) => i % step === 0);
}

function stepSize(span) {
  const rough = span / 5;
  const scale = 10 ** Math.floor(Math.log10(rough));
  return scale * [1, 2, 5, 10].find((factor) => factor * scale >= rough);
}

// What most curves need: the starts of bad ones are cut off.
function valueDomain(curves) {
  const ends = curves.map((curve) => curve.points[curve.points.length - 1][1]).sort((a, b) => a - b);
  const low = ends[0];
  const limit = Math.max(1.02, ends[Math.floor(0.75 * (ends.length - 1))]) + 0.15;
  const all = curves.flatMap((curve) => curve.points.map((point) => point[1]));
  const high = Math.max(low + 0.02, Math.min(limit, Math.max(...all)));
  const margin = 0.06 * (high - low);
  return {low: low - margin, high: high + margin};
}

function drawCurves(box, curves, isSeconds, domain) {
  const width = Math.max(260, box.clientWidth || 520);
  const height = Math.round(Math.min(340, Math.max(220, width * 0.6)));
  const left = 46, right = width - 26, top = 10, bottom = height - 28;
  const xs = curves.flatMap((curve) => curve.points.map((point) => point[0]));
  const first = Math.min(...xs);
  const last = Math.max(first * 10, isSeconds ? Math.max(...xs) : state.tier, ...xs);
  const x = (value) => left + (right - left) * Math.log(value / first) / Math.log(last / first);
  const y = (value) => bottom - (bottom - top) * (Math.min(value, domain.high) - domain.low) / (domain.high - domain.low);
  const picture = draw("svg", {viewBox: `0 0 ${width} ${height}`, role: "img",
    "aria-label": "Curves of " + count(curves.length, "agent") + (isSeconds ? " against seconds" : " against evaluations") + "; the table below has the values"});
  const step = stepSize(domain.high - domain.low);
  for (let value = Math.ceil(domain.low / step) * step; value <= domain.high; value += step) {
    picture.append(draw("line", {class: "grid", x1: left, x2: right, y1: y(value), y2: y(value)}),
      draw("text", {x: left - 6, y: y(value) + 4, "text-anchor": "end"}, value.toFixed(step < 0.01 ? 3 : 2)));
  }
  for (const value of ticksOf(first, last)) {
    const text = isSeconds ? duration(value).replace(/\.0+(?= )/, "") : value.toLocaleString("en");
    picture.append(draw("line", {class: "grid", x1: x(value), x2: x(value), y1: top, y2: bottom}),
      draw("text", {x: x(value), y: height - 8, "text-anchor": "middle"}, text));
  }
  if (domain.low < 1 && domain.high > 1) picture.append(draw("line", {class: "one", x1: left, x2: right, y1: y(1), y2: y(1)}));
  for (const curve of curves) {
    let path = "";
    curve.points.forEach(([at, value], i) => {
      path += i === 0 ? `M${x(at).toFixed(1)},${y(value).toFixed(1)}` : `H${x(at).toFixed(1)}V${y(value).toFixed(1)}`;
    });
    const end = curve.points[curve.points.length - 1];
    picture.append(draw("path", {d: path + `H${right}`, class: "tail " + curve.look, "data-file": curve.entry.file}),
      draw("path", {d: path, class: "curve " + curve.look, "data-file": curve.entry.file}, draw("title", {}, nameOf(curve.entry))),
      draw("circle", {cx: x(end[0]), cy: y(end[1]), r: 3, class: "point " + curve.look, "data-file": curve.entry.file}));
  }
  box.replaceChildren(picture);
}

const lookOf = (index) => "look-" + index % 8 + " dash-" + Math.floor(index / 8) % 4;

function emphasize(file) {
  for (const shape of document.querySelectorAll("#curves [data-file]")) {
    shape.classList.toggle("faded", file !== null && shape.dataset.file !== file);
  }
}

function showCurves() {
  const tasks = curveTasks();
  const options = [{value: "", text: "all that count: interquartile mean"}]
    .concat(suiteShown().tasks.map((task) => ({value: task.name, text: task.name})));
  fillSelect(byId("curve-task"), options, state.curve);
  const isMeasured = tasks.every((task) => task.critical_path);
  byId("curves-note").textContent = "The best makespan so far, as the agent measured it by its own luck, over " +
    (isMeasured ? "critical-path's" : "the lower bound") +
    (state.curve === "" ? "; interquartile mean over tasks and seeds." : "; mean over the seeds.") +
    " Dotted: the agent had ended.";
  const all = tierShown().ranking.map((entry, index) => ({entry, look: lookOf(index)}));
  const passed = new Set(entriesShown());
  const average = state.curve === "" ? interquartileMean : mean;
  const shown = all.filter(({entry}) => passed.has(entry));
  const curves = (isSeconds) => shown.filter(({entry}) => !hiddenCurves.has(entry.file))
    .map((item) => ({...item, points: curveOf(stepsOf(item.entry.file, tasks, isSeconds), average)}))
    .filter((curve) => curve.points.length > 0);
  const byEvaluations = curves(false);
  const bySeconds = curves(true);
  const boxes = [[byId("curve-evaluations"), byEvaluations, false], [byId("curve-seconds"), bySeconds, true]];
  const above = new Set();  // files of the rows whose curves lie above the charts
  for (const [figure, list, isSeconds] of boxes) {
    const box = figure.querySelector(".chart");
    if (list.length === 0) {
      box.replaceChildren(make("p", {class: "note"}, "No curve is shown."));
      continue;
    }
    const domain = valueDomain(list);
    const [inside, outside] = [true, false].map((is) => 
      list.filter((curve) => is === (curve.points[curve.points.length - 1][1] <= domain.high)));
    for (const curve of outside) above.add(curve.entry.file);
    drawCurves(box, inside, isSeconds, domain);
  }
  const legend = byId("curve-legend");
  legend.replaceChildren(...shown.map(({entry, look}) => make("button", {
    type: "button", "aria-pressed": !hiddenCurves.has(entry.file), "data-file": entry.file,
    click: () => {
      if (!hiddenCurves.delete(entry.file)) hiddenCurves.add(entry.file);
      showCurves();
      [...legend.children].find((button) => button.dataset.file === entry.file)?.focus();
    },
    mouseenter: () => emphasize(entry.file), mouseleave: () => emphasize(null),
    focus: () => emphasize(entry.file), blur: () => emphasize(null)},
  draw("svg", {class: "swatch", viewBox: "0 0 24 8", "aria-hidden": "true"}, draw("line", {x1: 0, x2: 24, y1: 4, y2: 4, class: "curve " + look})),
  foreign(nameOf(entry)), above.has(entry.file) ? make("span", {class: "note"}, "above the chart") : "")));
  showCurveValues(byEvaluations);
}

function showCurveValues(curves) {
  const places = suiteShown().tiers.map((tier) => tier.evaluations).filter((tier) => tier <= state.tier);
  const head = make("tr", {}, make("th", {scope: "col"}, "Agent"),
    ...places.map((place) => make("th", {scope: "col", class: "number"}, "after " + place.toLocaleString("en"))));
  const rows = curves.map(({entry, points}) => make("tr", {}, make("th", {scope: "row"}, foreign(nameOf(entry))),
    ...places.map((place) => {
      const reached = points.filter(([at]) => at <= place);
      return make("td", {class: "number"}, reached.length ? reached[reached.length - 1][1].toFixed(4) : "–");
    })));
  byId("curve-values").querySelector("table").replaceChildren(make("thead", {}, head), make("tbody", {}, ...rows));
}
