"use strict";
// The ranking tables of the report that the page holds. Texts of rows are set as text, never as
// markup.
(function () {
  const report = JSON.parse(document.getElementById("report").textContent);
  const main = document.getElementById("main");

  function add(parent, name, text) {
    const element = document.createElement(name);
    if (text !== undefined) element.textContent = text;
    parent.appendChild(element);
    return element;
  }

  function cell(row, text, isNumber) {
    const element = add(row, "td", text);
    if (isNumber) element.className = "number";
    return element;
  }

  function interval(value) {
    if (value === null) return "-";
    return value.value.toFixed(4) + " (" + value.low.toFixed(4) + " .. " + value.high.toFixed(4) + ")";
  }

  function ranking(tier) {
    const table = add(main, "table");
    const head = add(add(table, "thead"), "tr");
    for (const title of ["rank", "agent", "kind", "score", "evaluations", "decided in"]) {
      add(head, "th", title);
    }
    const body = add(table, "tbody");
    for (const entry of tier.ranking) {
      const row = add(body, "tr");
      cell(row, entry.rank === null ? "-" : String(entry.rank), true);
      const agent = cell(row, entry.link ? undefined : entry.agent);
      if (entry.link) {
        const link = add(agent, "a", entry.agent);
        link.href = entry.link;
        link.rel = "noopener noreferrer nofollow";
      }
      cell(row, entry.kind);
      cell(row, interval(entry.score), true);
      cell(row, entry.evaluations.toPrecision(3), true);
      cell(row, entry.seconds.toPrecision(3) + " s", true);
    }
  }

  main.textContent = "";
  add(main, "h1", "Leaderboard");
  for (const suite of report.suites) {
    add(main, "h2", suite.name);
    add(main, "p", suite.summary);
    for (const tier of suite.tiers) {
      if (tier.ranking.length === 0) continue;
      add(main, "h3", tier.evaluations + (tier.evaluations === 1 ? " evaluation" : " evaluations"));
      ranking(tier);
    }
  }
})();
