// doppler-gym compare: how far the simulator is from a real engine.
#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/commands/commands.h"
#include "cli/comparison.h"
#include "cli/json_text.h"
#include "cli/output.h"
#include "cli/problem.h"
#include "cli/table.h"
#include "cli/units.h"
#include "graphs/error.h"

namespace doppler::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr HelpText kHelp = {
    .summary = "Compare the simulator with a real engine",
    .details =
        R"(Measures varied assignments (of heuristics, random, clustered) on the engine, in rounds
over all of them, and sets the median of each against the simulator: before calibration, with the
task's own costs, and after, with node times and links fitted to the other half of the assignments.
Agreement is Spearman's and Kendall's rank correlation (Spearman also within the best quarter) and
the mean relative error. --json has those after calibration at its top, those before under
`before`, the span (largest over smallest measured makespan) and every assignment; a figure that
cannot be told is null.)",
    .examples =
        R"(doppler-gym compare --task ffnn@cpu2 --engine cpu --assignments 50 --plot ffnn.svg
doppler-gym compare --task 'chainmm(n=1024,shards=4)@cpu2' --engine cpu --rounds 9 --json)"};

struct CompareOptions {
  ComparisonPlan plan;
  ProblemOptions problem;
  std::string plot;
  bool json = false;
};

Json number_or_null(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json agreement_json(const Agreement& agreement) {
  return {{"spearman", number_or_null(agreement.spearman)},
          {"spearman_best_quarter", number_or_null(agreement.spearman_best_quarter)},
          {"kendall", number_or_null(agreement.kendall)},
          {"mean_relative_error", number_or_null(agreement.mean_relative_error)}};
}

Json comparison_json(const ComparisonPlan& plan, const Comparison& comparison) {
  Json json = {{"task", plan.task.name}, {"engine", plan.engine}};
  json["settings"] = settings_json(plan.task);
  json["n_assignments"] = comparison.assignments.size();
  json["rounds"] = plan.rounds;
  json["span"] = comparison.span;
  json.update(agreement_json(comparison.after));
  json["before"] = agreement_json(comparison.before);
  json["assignments"] = Json::array();
  for (const ComparedAssignment& one : comparison.assignments) {
    json["assignments"].push_back({{"origin", one.origin},
                                   {"measured", one.measured},
                                   {"rounds", one.rounds},
                                   {"before", number_or_null(one.before)},
                                   {"after", number_or_null(one.after)}});
  }
  return json;
}

std::string figure(double value, int decimals) {
  return std::isfinite(value) ? fixed(value, decimals) : "-";
}

std::string comparison_text(const ComparisonPlan& plan, const Comparison& comparison) {
  std::vector<double> measured;
  std::vector<double> spreads;
  for (const ComparedAssignment& one : comparison.assignments) {
    measured.push_back(one.measured);
    const auto [least, most] = std::minmax_element(one.rounds.begin(), one.rounds.end());
    spreads.push_back((*most - *least) / one.measured);
  }
  const auto [least, most] = std::minmax_element(measured.begin(), measured.end());
  std::sort(spreads.begin(), spreads.end());
  const Unit unit = time_unit(*most, false);
  std::string text = plan.task.name + " (" + settings_text(plan.task) + ")\nengine    " +
                     plan.engine + "\nmeasured  " + std::to_string(measured.size()) +
                     " assignments, " + std::to_string(plan.rounds) +
                     " rounds: " + in_unit(*least, unit) + " to " + with_unit(*most, unit) +
                     ", a factor of " + fixed(comparison.span, 2) + "; rounds differ by " +
                     fixed(100 * spreads[spreads.size() / 2], 1) + " % (median)\n";
  if (comparison.span < 2) {
    text += "note      makespans within a factor of 2 say little of a rank correlation\n";
  }
  Table table({{"calibration"},
               {"Spearman", Align::right},
               {"best quarter", Align::right},
               {"Kendall", Align::right},
               {"mean relative error", Align::right}});
  const auto add = [&](const std::string& when, const Agreement& agreement) {
    table.add({when, figure(agreement.spearman, 3), figure(agreement.spearman_best_quarter, 3),
               figure(agreement.kendall, 3),
               figure(100 * agreement.mean_relative_error, 1) + " %"});
  };
  add("before", comparison.before);
  add("after", comparison.after);
  return text + "\n" + table.to_string();
}

void compare(CompareOptions& options) {
  check_can_save(options.plot);
  ComparisonPlan& plan = options.plan;
  plan.task = make_problem(options.problem);
  plan.seed = static_cast<std::uint64_t>(options.problem.seed);
  if (NamedCall::parse(plan.engine).name == "simulator") {
    throw UsageError(
        "--engine: the simulator is what is compared; give a real engine, such as cpu");
  }
  const Comparison comparison = compare(plan);
  if (!options.plot.empty()) save(options.plot, scatter_svg(plan, comparison));
  print(options.json ? json_text(comparison_json(plan, comparison))
                     : comparison_text(plan, comparison));
}

}  // namespace

void add_compare(Command& program) {
  Command command = program.add("compare", kHelp);
  auto options = std::make_shared<CompareOptions>();
  command.option({"--engine", "NAME", "A real engine; see doppler-gym tasks --engines"},
                 into(options->plan.engine), true);
  command.option({"--assignments", "N", "How many. Default 50"},
                 into(options->plan.n_assignments, 8, 10'000));
  command.option({"--rounds", "N", "How often each is measured. Default 5"},
                 into(options->plan.rounds, 1, 10'000));
  command.option({"--plot", "FILE", "Write scatter plots (SVG)"}, into(options->plot));
  command.flag("--json", "Print an object", options->json);
  add_problem_options(command, options->problem);
  command.run([options] { compare(*options); });
}

}  // namespace doppler::cli
