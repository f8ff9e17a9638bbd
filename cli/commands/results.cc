// doppler-gym results: grids of runs, their table and their curves.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "cli/commands/commands.h"
#include "cli/json_text.h"
#include "cli/output.h"
#include "cli/problem.h"
#include "cli/results.h"
#include "cli/table.h"
#include "cli/units.h"
#include "graphs/error.h"
#include "graphs/file.h"
#include "leaderboard/curve_plot.h"
#include "leaderboard/result_summary.h"

namespace doppler::cli {
namespace {

constexpr HelpText kHelp = {
    .summary = "Grids of runs, a file each: run, table, plot, check",
    .details = R"(A row is one run of an agent on a task with a seed and a budget, with its
assignment and the curve of its best makespan; docs/result-rows.md has the schema.)",
    .examples = R"(doppler-gym results run --tasks published/ffnn --agents annealing,rule-search \
    --evaluations 1000,10000 --seeds 3 --rows rows
doppler-gym results table --rows rows --markdown
doppler-gym results plot --rows rows --out curves)"};

constexpr HelpText kRunHelp = {
    .summary = "Run every task x agent x budget x seed that a folder lacks",
    .details = R"(Rows that are there are left as they are, so that the same command goes on where
it was broken off. Heuristics get one row with one evaluation. A row that fails does not stop the
others; the exit code is 1 then.)",
    .examples = R"(doppler-gym results run --tasks llama-layer@p100x4,published/ffnn \
    --agents partner-list,annealing --evaluations 1000 --seeds 5 --jobs 2 --rows rows)"};

constexpr HelpText kTableHelp = {
    .summary = "Median and range over the seeds, by task, agent and budget",
    .details = R"(Each line: median makespan; least .. largest; median over the least makespan of
any row of the task, and over the lower bound; median of evaluations used and seconds to decide.)",
    .examples = R"(doppler-gym results table --rows rows
doppler-gym results table --rows rows --markdown --out table.md)"};

constexpr HelpText kPlotHelp = {
    .summary = "Curves of the best makespan, one SVG a task",
    .details = "Against evaluations and against seconds, medians over the seeds.",
    .examples = "doppler-gym results plot --rows rows --out curves"};

constexpr HelpText kCheckHelp = {
    .summary = "Run the assignment of every row again",
    .details = "Exit code 1 unless every row gives its makespan on the task of its name.",
    .examples = "doppler-gym results check --rows rows"};

struct RunOptionsOfGrid {
  ResultGrid grid;
  std::vector<std::string> evaluations;
  std::string rows;
  std::int64_t jobs = 1;
  bool json = false;
};

struct ShowOptions {
  std::string rows;
  std::string out;
  bool json = false;
  bool markdown = false;
};

void run_grid(const RunOptionsOfGrid& options) {
  ResultGrid grid = options.grid;
  if (!options.evaluations.empty()) grid.evaluations.clear();
  for (const std::string& text : options.evaluations) {
    std::int64_t budget = 0;
    into(budget, 1)("--evaluations", {text});
    grid.evaluations.push_back(budget);
  }
  std::vector<Task> tasks;
  for (const std::string& spelling : grid.tasks) {
    tasks.push_back(make_problem_of_task(spelling, grid.settings));
  }
  const std::vector<PlannedRow> planned = plan_rows(grid, tasks);
  const RowsDone done = run_rows(planned, options.rows, static_cast<int>(options.jobs));
  if (!done.failures.empty()) {
    throw RunError(std::to_string(done.failures.size()) + " of " + std::to_string(planned.size()) +
                   " rows failed; the first: " + done.failures.front());
  }
  if (options.json) {
    print(json_text({{"made", done.n_made}, {"found", done.n_found}}));
  } else {
    print(std::to_string(done.n_made) + " rows made, " + std::to_string(done.n_found) +
          " were there, in " + options.rows + "\n");
  }
}

std::string budget_text(const ResultSummary& summary) {
  std::string text = std::to_string(summary.max_evaluations);
  if (std::isfinite(summary.max_seconds)) text += " or " + seconds_text(summary.max_seconds);
  return text;
}

std::string percent(const std::optional<double>& excess) {
  return excess ? fixed(100 * *excess, 2) + " %" : "-";
}

const std::vector<Column>& columns() {
  static const std::vector<Column> list = {{"task"},
                                           {"budget", Align::right},
                                           {"agent"},
                                           {"seeds", Align::right},
                                           {"median", Align::right},
                                           {"least .. largest", Align::right},
                                           {"over best", Align::right},
                                           {"over bound", Align::right},
                                           {"evaluations", Align::right},
                                           {"decided in", Align::right}};
  return list;
}

// The unit of all lines of a task.
Unit unit_of(std::span<const ResultSummary> summaries, const std::string& task) {
  double largest = 0;
  bool raw = false;
  for (const ResultSummary& summary : summaries) {
    if (summary.task != task) continue;
    raw = summary.rows.front()->raw_costs;
    if (std::isfinite(summary.median_makespan)) {
      largest = std::max(largest, summary.median_makespan);
    }
  }
  return time_unit(largest, raw);
}

std::vector<std::vector<std::string>> cells_of(std::span<const ResultSummary> summaries) {
  std::vector<std::vector<std::string>> lines;
  for (const ResultSummary& summary : summaries) {
    const Unit unit = unit_of(summaries, summary.task);
    lines.push_back(
        {summary.task, budget_text(summary), summary.agent, std::to_string(summary.rows.size()),
         with_unit(summary.median_makespan, unit),
         in_unit(summary.least_makespan, unit) + " .. " + in_unit(summary.largest_makespan, unit),
         percent(summary.over_best), percent(summary.over_bound),
         fixed(summary.median_evaluations, 0), seconds_text(summary.median_seconds)});
  }
  return lines;
}

std::string markdown_text(std::span<const ResultSummary> summaries) {
  const auto line = [](const std::vector<std::string>& cells) {
    std::string text = "|";
    for (const std::string& cell : cells) text += " " + cell + " |";
    return text + "\n";
  };
  std::vector<std::string> titles;
  std::vector<std::string> rules;
  for (const Column& column : columns()) {
    titles.push_back(column.title);
    rules.emplace_back(column.align == Align::left ? "---" : "---:");
  }
  std::string text = line(titles) + line(rules);
  for (const auto& cells : cells_of(summaries)) text += line(cells);
  return text;
}

void show_table(const ShowOptions& options) {
  check_can_save(options.out);
  if (options.json && options.markdown) {
    throw UsageError("--json and --markdown exclude each other; give one");
  }
  const std::vector<ResultRow> rows = read_rows(options.rows);
  const std::vector<ResultSummary> summaries = summarise(rows);
  if (options.json) {
    deliver(options.out, json_text(table_json(rows.size(), summaries)));
  } else if (options.markdown) {
    deliver(options.out, markdown_text(summaries));
  } else {
    Table table(columns());
    for (auto& cells : cells_of(summaries)) table.add(std::move(cells));
    deliver(options.out, table.to_string());
  }
}

void plot(const ShowOptions& options) {
  const std::vector<ResultRow> rows = read_rows(options.rows);
  const std::vector<ResultSummary> summaries = summarise(rows);
  std::error_code code;
  std::filesystem::create_directory(options.out, code);
  if (code) throw RunError(options.out + ": cannot make the folder: " + code.message());
  std::string text;
  std::set<std::string> names;  // tasks whose names differ in a sign alone get a file each
  for (std::size_t first = 0, end = 0; first < summaries.size(); first = end) {
    const std::string& task = summaries[first].task;
    while (end < summaries.size() && summaries[end].task == task) ++end;
    std::string name = file_name_of(task);
    while (!names.insert(name).second) name += "_";
    const std::string path = options.out + "/" + name + ".svg";
    save(path, curves_svg(std::span(summaries).subspan(first, end - first)));
    text += path + "\n";
  }
  print(text);
}

void check(const ShowOptions& options) {
  const std::vector<ResultRow> rows = read_rows(options.rows);
  for (const ResultRow& row : rows) {
    try {
      check_row(row, task_of(row.key));
    } catch (const Error& error) {
      throw RunError(options.rows + "/" + row.key.file_name() + ": " + error.what());
    }
  }
  print(std::to_string(rows.size()) + " rows give their makespans\n");
}

void add_rows_option(Command& command, std::string& target) {
  command.option({"--rows", "DIR", "The folder of the rows"}, into(target), true);
}

void add_run(Command& results) {
  Command command = results.add("run", kRunHelp);
  auto options = std::make_shared<RunOptionsOfGrid>();
  command.option({"--rows", "DIR", "The folder of the rows; made if there is none"},
                 into(options->rows), true);
  command.option({"--tasks,--task", "A,B", "Tasks: registered ones, or any workload@cluster"},
                 into(options->grid.tasks), true);
  command.option({"--agents,--agent", "X,Y", "Agents, with parameters where wanted"},
                 into(options->grid.agents), true);
  command.option(
      {"--evaluations", "N,M", "Budgets: the most runs of the engine of one run. Default 1000"},
      into(options->evaluations));
  command.option({"--seconds", "S", "The most seconds of one run. Default: no limit"},
                 into(options->grid.seconds, 0.0));
  command.option({"--seeds", "N", "How many seeds for each. Default 1"},
                 into(options->grid.n_seeds, 1, 1000000));
  command.option({"--first-seed", "N", "Seeds are N, N + 1, ... Default 0"},
                 into(options->grid.first_seed, 0));
  command.option(
      {"--jobs", "N", "Runs side by side; 0: one a core. More may disturb seconds. Default 1"},
      into(options->jobs, 0, 1024));
  command.flag("--json", "Print an object", options->json);
  add_setting_options(command, options->grid.settings);
  command.run([options] { run_grid(*options); });
}

}  // namespace

void add_results(Command& program) {
  Command results = program.add("results", kHelp);
  add_run(results);

  Command table = results.add("table", kTableHelp);
  auto table_options = std::make_shared<ShowOptions>();
  add_rows_option(table, table_options->rows);
  table.option({"--out", "FILE", "Write it there instead of printing it"},
               into(table_options->out));
  table.flag("--markdown", "As a Markdown table", table_options->markdown);
  table.flag("--json", "As an object, with full figures (null: out of memory)",
             table_options->json);
  table.run([table_options] { show_table(*table_options); });

  Command plots = results.add("plot", kPlotHelp);
  auto plot_options = std::make_shared<ShowOptions>();
  add_rows_option(plots, plot_options->rows);
  plots.option({"--out", "DIR", "Where the pictures go; made if there is none"},
               into(plot_options->out), true);
  plots.run([plot_options] { plot(*plot_options); });

  Command checks = results.add("check", kCheckHelp);
  auto check_options = std::make_shared<ShowOptions>();
  add_rows_option(checks, check_options->rows);
  checks.run([check_options] { check(*check_options); });
}

}  // namespace doppler::cli
