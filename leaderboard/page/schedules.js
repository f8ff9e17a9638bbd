"use strict";
// Two rows' schedules of one task beside each other, on one scale of time.

const LABELS = 64;  // pixels for the devices' names
const marked = {node: -1};

// Kinds of nodes: eight colours, then the same paler.
const kindLook = (kind) => "look-" + kind % 8 + " shade-" + Math.min(2, Math.floor(kind / 8));

const rowsOfSuite = () => report.rows.filter((row) => row.suite === state.suite);

function rowName(row) {
  const entry = suiteShown().tiers.flatMap((tier) => tier.ranking).find((item) => item.file === row.file);
  const authors = rowsOfSuite().some((other) => other !== row && other.agent === row.agent && other.tier === row.tier);
  return row.agent + " · " + row.tier.toLocaleString("en") +
    (authors && entry ? " (" + entry.authors.join(", ") + ")" : "");
}

function scheduleOf(file, task) {
  const found = rowOf.get(file)?.tasks.find((item) => item.task === task);
  if (!found || !found.schedule) return null;
  return {...report.timelines[found.schedule.timeline], seed: found.schedule.seed};
}

const hasSchedule = (row, task) => scheduleOf(row.file, task) !== null;

// Lanes of nodes that overlap on a device with several streams: [lane by node, lanes by device].
function lanesOf(schedule, nDevices) {
  const order = schedule.start.map((_, v) => v).sort((a, b) => schedule.start[a] - schedule.start[b] || schedule.end[a] - schedule.end[b]);
  const ends = Array.from({length: nDevices}, () => []);
  const lane = new Array(order.length).fill(0);
  for (const v of order) {
    const used = ends[schedule.device[v]];
    let free = used.findIndex((end) => end <= schedule.start[v]);
    if (free < 0) free = used.length;
    used[free] = schedule.end[v];
    lane[v] = free;
  }
  return [lane, ends.map((used) => Math.max(1, used.length))];
}

function nodeText(name, graph, schedule, v) {
  const time = (part) => duration(part / report.schedules.parts * schedule.makespan, schedule.raw);
  return `${name}: ${graph.nodes[v]}` + (graph.kinds[graph.kind[v]] ? ` (${graph.kinds[graph.kind[v]]})` : "") +
    ` on device ${schedule.device[v]}, ${time(schedule.start[v])} to ${time(schedule.end[v])}`;
}

// The neighbour of a node in its device's order, or on the next device about the same time.
function neighbour(schedule, v, key, nDevices) {
  const onDevice = (device) => schedule.device.map((d, node) => (d === device ? node : -1)).filter((node) => node >= 0)
    .sort((a, b) => schedule.start[a] - schedule.start[b] || a - b);
  if (key === "ArrowLeft" || key === "ArrowRight") {
    const order = onDevice(schedule.device[v]);
    return order[order.indexOf(v) + (key === "ArrowRight" ? 1 : -1)] ?? v;
  }
  const step = key === "ArrowDown" ? 1 : -1;
  for (let device = schedule.device[v] + step; device >= 0 && device < nDevices; device += step) {
    const order = onDevice(device);
    if (order.length === 0) continue;
    const before = order.filter((node) => schedule.start[node] <= schedule.start[v]);
    return before[before.length - 1] ?? order[0];
  }
  return v;
}

function mark(v, isTold) {
  marked.node = v;
  for (const shape of document.querySelectorAll(".gantt rect.marked")) shape.classList.remove("marked");
  if (v < 0) return;
  const texts = [];
  for (const panel of document.querySelectorAll(".gantt")) {
    const shape = panel.querySelector(`rect[data-node="${v}"]`);
    if (!shape) continue;
    shape.classList.add("marked");
    shape.parentNode.append(shape);  // above the others
    texts.push(panel.tell(v));
  }
  if (isTold) byId("gantt-node").textContent = texts.join(" — ");
}

function follow(scroller, shape) {
  const left = Number(shape.getAttribute("x"));
  const right = left + Number(shape.getAttribute("width"));
  if (left < scroller.scrollLeft) scroller.scrollLeft = left - 20;
  if (right > scroller.scrollLeft + scroller.clientWidth) scroller.scrollLeft = right - scroller.clientWidth + 20;
}

function drawSchedule(panel, name, schedule, graph, longest) {
  const nDevices = graph.devices.length;
  const [lane, lanes] = lanesOf(schedule, nDevices);
  const height = nDevices <= 8 ? 22 : nDevices <= 32 ? 14 : 6;
  const room = Math.max(180, (panel.clientWidth || 600) - LABELS - 2);
  const width = room * 2 ** state.zoom;
  const scale = width * schedule.makespan / longest / report.schedules.parts;
  const picture = draw("svg", {width, height: nDevices * height + 18, tabindex: 0, role: "application",
    "aria-label": "Schedule of " + name + ", arrow keys move between nodes", "aria-describedby": "gantt-node"});
  for (let device = 0; device < nDevices; ++device) {
    picture.append(draw("rect", {class: "lane", x: 0, y: device * height, width, height: height - 2}));
  }
  const nodes = draw("g");
  for (let v = 0; v < schedule.start.length; ++v) {
    const device = schedule.device[v];
    const size = (height - 2) / lanes[device];
    nodes.append(draw("rect", {class: "node " + kindLook(graph.kind[v]), "data-node": v,
      x: (schedule.start[v] * scale).toFixed(2), width: Math.max(0.4, (schedule.end[v] - schedule.start[v]) * scale).toFixed(2),
      y: device * height + lane[v] * size, height: size}));
  }
  picture.append(nodes);
  const end = schedule.makespan / longest * width;
  picture.append(draw("line", {class: "end", x1: end - 0.5, x2: end - 0.5, y1: 0, y2: nDevices * height}),
    draw("text", {x: end - 4, y: nDevices * height + 13, "text-anchor": "end"}, duration(schedule.makespan, schedule.raw)));
  const labels = make("div", {class: "devices", "aria-hidden": "true"});
  labels.style.gridAutoRows = height + "px";
  graph.devices.forEach((kind, device) => labels.append(
    make("div", {title: kind}, height < 14 && device % 8 ? "" : device + (height < 14 ? "" : " " + kind))));
  const scroller = make("div", {class: "scroller", scroll: () => {
    for (const other of document.querySelectorAll(".gantt .scroller")) {
      if (other !== scroller && other.scrollLeft !== scroller.scrollLeft) other.scrollLeft = scroller.scrollLeft;
    }
  }}, picture);
  panel.tell = (v) => nodeText(name, graph, schedule, v);
  picture.addEventListener("pointerover", (event) => {
    if (event.target.dataset.node !== undefined) mark(Number(event.target.dataset.node), true);
  });
  picture.addEventListener("click", (event) => {
    if (event.target.dataset.node !== undefined) mark(Number(event.target.dataset.node), true);
  });
  picture.addEventListener("keydown", (event) => {
    if (!event.key.startsWith("Arrow")) return;
    event.preventDefault();
    const first = schedule.start.indexOf(Math.min(...schedule.start));
    mark(marked.node < 0 ? first : neighbour(schedule, marked.node, event.key, nDevices), true);
    follow(scroller, picture.querySelector("rect.marked"));
  });
  return make("div", {class: "lanes"}, labels, scroller);
}

function showPanel(panel, file, task, longest) {
  panel.replaceChildren();
  panel.tell = () => "";
  const row = rowOf.get(file);
  if (!row) {
    panel.append(make("p", {class: "note"}, "No row is chosen."));
    return;
  }
  const name = rowName(row);
  const schedule = scheduleOf(file, task.name);
  panel.append(make("h3", {}, foreign(name)));
  if (!schedule) {
    panel.append(make("p", {class: "note"}, whyNoSchedule(row, task)));
    return;
  }
  schedule.raw = task.raw_costs;
  const graph = report.graphs[task.hash];
  const busy = schedule.busy.reduce((sum, value) => sum + value, 0) / schedule.busy.length / schedule.makespan;
  const against = task.critical_path ? " · " + ratio(schedule.makespan / task.critical_path) + " of critical-path" : "";
  panel.append(make("p", {class: "note"}, duration(schedule.makespan, task.raw_costs) + against + " · devices " +
    percent(busy) + " busy · seed " + schedule.seed), drawSchedule(panel, name, schedule, graph, longest));
}

function whyNoSchedule(row, task) {
  const found = row.tasks.find((item) => item.task === task.name);
  if (!found) return "The row leaves this task out.";
  if (task.nodes > report.schedules.max_nodes_of_one) {
    return "Graphs of more than " + report.schedules.max_nodes_of_one.toLocaleString("en") + " nodes have no schedule in this page.";
  }
  if (found.runs.every((run) => run.makespans.includes(null))) return "Its best decision is out of memory.";
  return "This page has room for the schedules of the best rows only; make one of fewer rows to see it.";
}

function showSchedules() {
  const suite = suiteShown();
  const rows = rowsOfSuite();
  const tasks = suite.tasks.map((task) => ({value: task.name, text: task.name, disabled: !rows.some((row) => hasSchedule(row, task.name))}));
  if (!suite.tasks.some((task) => task.name === state.task)) state.task = (tasks.find((task) => !task.disabled) || tasks[0]).value;
  const files = new Set(rows.map((row) => row.file));
  const best = tierShown().ranking.map((entry) => entry.file);
  const choices = [...best, ...files];
  if (!files.has(state.a)) state.a = choices.find((file) => file !== state.b) || choices[0] || "";
  if (!files.has(state.b)) state.b = choices.find((file) => rowOf.get(file).agent === "critical-path" && file !== state.a) ||
    choices.find((file) => file !== state.a) || state.a;
  const options = [...rows].sort((x, y) => compare(x.agent, y.agent) || x.tier - y.tier)
    .map((row) => ({value: row.file, text: rowName(row)}));
  fillSelect(byId("schedule-task"), tasks, state.task);
  fillSelect(byId("schedule-a"), options, state.a);
  fillSelect(byId("schedule-b"), options, state.b);
  const task = suite.tasks.find((item) => item.name === state.task);
  byId("schedules-note").textContent = "Where and when each node ran: the best decision of a row" +
    (task.noise > 0 ? ", in its first execution" : "") + (suite.engine === "simulator" ? "" : ", in the simulator") +
    ". Both on one scale of time.";
  const longest = Math.max(...[state.a, state.b].map((file) => scheduleOf(file, task.name)?.makespan ?? 0)) || 1;
  marked.node = -1;
  showPanel(byId("gantt-a"), state.a, task, longest);
  showPanel(byId("gantt-b"), state.b, task, longest);
  const graph = report.graphs[task.hash];
  byId("gantt-legend").replaceChildren(...(graph ? graph.kinds.map((kind, i) =>
    make("span", {class: "kind " + kindLook(i)}, kind || "node")) : []));
}

// The row's schedule, of the task that is shown if the row has it, beside what was open before.
function openSchedule(file) {
  const row = rowOf.get(file);
  const values = {a: file, b: state.b === file ? state.a : state.b};
  if (!hasSchedule(row, state.task)) {
    const other = row.tasks.find((task) => task.schedule);
    if (other) values.task = other.task;
  }
  change(values);
  byId("schedules").focus({preventScroll: true});
  byId("schedules").scrollIntoView();
}
