// doppler-gym dataset: recorded data sets checked, mended, merged, summed up, split.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cli/commands/commands.h"
#include "cli/json_text.h"
#include "cli/output.h"
#include "cli/statistics.h"
#include "cli/table.h"
#include "cli/units.h"
#include "datasets/trajectories/dataset_files.h"
#include "graphs/error.h"

namespace doppler::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr HelpText kHelp = {
    .summary = "Check, repair, merge, sum up or split data sets",
    .details =
        "A data set is named by its folder; a root of data sets will do for check, and for "
        "the others if it holds one alone.",
    .examples =
        "doppler-gym dataset check data\n"
        "doppler-gym dataset stats data/dopplergym/llama-layer_p100x4/critical-path-v0"};

struct DatasetOptions {
  std::vector<std::string> paths;
  std::string out;
  std::string id;
  std::vector<std::string> ids;
  std::vector<std::string> fractions;
  std::int64_t seed = 0;
  bool json = false;
};

std::vector<DatasetPaths> named_datasets(const DatasetOptions& options) {
  std::vector<DatasetPaths> all;
  for (const std::string& path : options.paths) {
    for (DatasetPaths& one : find_datasets(path)) all.push_back(std::move(one));
  }
  return all;
}

const std::string& only_path(const DatasetOptions& options) {
  if (options.paths.size() != 1) throw UsageError("give one data set");
  return options.paths[0];
}

void run_check(const DatasetOptions& options) {
  Json list = Json::array();
  std::string text;
  std::int64_t n_bad = 0;
  for (const DatasetPaths& paths : named_datasets(options)) {
    const DatasetCheck check = check_dataset(paths);
    n_bad += check.faults.empty() ? 0 : 1;
    list.push_back({{"folder", paths.folder},
                    {"episodes", check.n_episodes},
                    {"steps", check.n_steps},
                    {"waiting", check.n_waiting},
                    {"faults", check.faults}});
    text += paths.folder + ": " + std::to_string(check.n_episodes) + " episodes, " +
            std::to_string(check.n_steps) + " steps" + (check.faults.empty() ? ", whole\n" : "\n");
    for (const std::string& fault : check.faults) text += "  " + fault + "\n";
  }
  print(options.json ? json_text(list) : text);
  if (n_bad == 0) return;
  throw RunError(std::to_string(n_bad) + " of " + std::to_string(list.size()) +
                 " data sets are not whole");
}

void run_repair(const DatasetOptions& options) {
  const DatasetPaths paths = find_dataset(only_path(options));
  const RepairResult result =
      options.out.empty() ? repair_dataset(paths) : recover_dataset(paths, options.out);
  if (options.json) {
    print(json_text(Json{{"episodes", result.n_episodes}, {"notes", result.notes}}));
    return;
  }
  std::string text;
  for (const std::string& note : result.notes) text += note + "\n";
  print(text + std::to_string(result.n_episodes) + " episodes in " +
        (options.out.empty() ? paths.folder : options.out) + "\n");
}

void run_merge(const DatasetOptions& options) {
  const std::int64_t n = merge_datasets(named_datasets(options), options.out, options.id);
  print(options.json ? json_text(Json{{"id", options.id}, {"episodes", n}})
                     : options.id + ": " + std::to_string(n) + " episodes\n");
}

Json numbers_json(const std::vector<double>& values) {
  if (values.empty()) return nullptr;
  const auto [least, largest] = std::minmax_element(values.begin(), values.end());
  return {{"mean", mean(values)}, {"least", *least}, {"largest", *largest}};
}

void run_stats(const DatasetOptions& options) {
  Json list = Json::array();
  Table table({{"data set"},
               {"episodes", Align::right},
               {"steps", Align::right},
               {"an episode", Align::right},
               {"size", Align::right},
               {"makespan", Align::right},
               {"best", Align::right}});
  for (const DatasetPaths& paths : named_datasets(options)) {
    const DatasetStatistics one = dataset_statistics(paths);
    list.push_back({{"id", one.id},
                    {"tasks", one.tasks},
                    {"episodes", one.n_episodes},
                    {"steps", one.n_steps},
                    {"shortest", one.shortest},
                    {"longest", one.longest},
                    {"bytes", one.bytes},
                    {"return", numbers_json(one.returns)},
                    {"makespan", numbers_json(one.makespans)}});
    const double average = one.makespans.empty() ? 0 : mean(one.makespans);
    const double best =
        one.makespans.empty() ? 0 : *std::min_element(one.makespans.begin(), one.makespans.end());
    const Unit unit = time_unit(std::isfinite(average) ? average : best, average > 1e6);
    table.add({one.id, std::to_string(one.n_episodes), std::to_string(one.n_steps),
               one.shortest == one.longest
                   ? std::to_string(one.longest)
                   : std::to_string(one.shortest) + "-" + std::to_string(one.longest),
               bytes_text(static_cast<double>(one.bytes), false),
               one.makespans.empty() ? "-" : with_unit(average, unit),
               one.makespans.empty() ? "-" : with_unit(best, unit)});
  }
  print(options.json ? json_text(list) : table.to_string());
}

std::vector<SplitPart> parts_of(const DatasetOptions& options, std::int64_t n_episodes) {
  if (options.ids.size() != options.fractions.size()) {
    throw UsageError("--fractions has " + std::to_string(options.fractions.size()) +
                     " numbers, --ids " + std::to_string(options.ids.size()) +
                     " names; give one for each part");
  }
  std::vector<SplitPart> parts;
  double sum = 0;
  std::int64_t given = 0;
  for (std::size_t i = 0; i < options.ids.size(); ++i) {
    double fraction = 0;
    into(fraction, 0.0, 1.0)("--fractions", {options.fractions[i]});
    sum += fraction;
    if (sum > 1 + 1e-9) throw UsageError("--fractions: they are more than 1 together");
    // Bounds are rounded, so that all of them together leave nothing over.
    const auto end = static_cast<std::int64_t>(
        std::llround(std::min(1.0, sum) * static_cast<double>(n_episodes)));
    parts.push_back({options.ids[i], end - given});
    given = end;
  }
  return parts;
}

void run_split(const DatasetOptions& options) {
  const DatasetPaths paths = find_dataset(only_path(options));
  const std::vector<SplitPart> parts = parts_of(options, dataset_statistics(paths).n_episodes);
  split_dataset(paths, options.out, parts, static_cast<std::uint64_t>(options.seed));
  Json list = Json::array();
  std::string text;
  for (const SplitPart& part : parts) {
    list.push_back({{"id", part.id}, {"episodes", part.n_episodes}});
    text += part.id + ": " + std::to_string(part.n_episodes) + " episodes\n";
  }
  print(options.json ? json_text(list) : text);
}

using Run = void (*)(const DatasetOptions&);

// Describes a subcommand; `more` adds its own options.
void add(Command& dataset, const std::string& name, const HelpText& help, Run run,
         const std::function<void(Command&, DatasetOptions&)>& more) {
  Command command = dataset.add(name, help);
  auto options = std::make_shared<DatasetOptions>();
  command.option({"PATH", "PATH", "Folder of a data set, or a root of data sets"},
                 into(options->paths), true);
  more(command, *options);
  command.flag("--json", "Print JSON", options->json);
  command.run([options, run] { run(*options); });
}

}  // namespace

void add_dataset(Command& program) {
  Command dataset = program.add("dataset", kHelp);
  const auto out = [](Command& command, DatasetOptions& options, const char* summary,
                      bool required) {
    command.option({"--out", "DIR", summary}, into(options.out), required);
  };
  add(dataset, "check",
      {.summary = "Read everything and tell what is not whole",
       .details = "Exit code 1 if there is a fault. Each is told with how to mend it.",
       .examples = "doppler-gym dataset check data"},
      run_check, [](Command&, DatasetOptions&) {});
  add(dataset, "repair",
      {.summary = "Build finished episodes in, or copy what is whole",
       .details = "Without --out: finished episodes of a recording that was stopped are built in. "
                  "With --out: every episode of a damaged data set that is whole is copied to a "
                  "root of that name, and the damaged one left as it is.",
       .examples = "doppler-gym dataset repair data\n"
                   "doppler-gym dataset repair damaged --out recovered"},
      run_repair, [&](Command& command, DatasetOptions& options) {
        out(command, options, "Another root, for copies of what is whole", false);
      });
  add(dataset, "merge",
      {.summary = "Copy several data sets of equal spaces into a new one",
       .examples = "doppler-gym dataset merge data more --out all --id dopplergym/both-v0"},
      run_merge, [&](Command& command, DatasetOptions& options) {
        out(command, options, "The root of the new data set", true);
        command.option({"--id", "ID", "Of the new data set"}, into(options.id), true);
      });
  add(dataset, "stats",
      {.summary = "Episodes, steps, size and makespans",
       .examples = "doppler-gym dataset stats data"},
      run_stats, [](Command&, DatasetOptions&) {});
  add(dataset, "split",
      {.summary = "Copy the episodes, at random, into several data sets",
       .examples =
           "doppler-gym dataset split data --fractions 0.9,0.1 --ids mine/train-v0,mine/test-v0 "
           "--out parts"},
      run_split, [&](Command& command, DatasetOptions& options) {
        out(command, options, "The root of the new data sets", true);
        command.option({"--fractions", "A,B", "The share of each part"}, into(options.fractions),
                       true);
        command.option({"--ids", "X,Y", "Their ids"}, into(options.ids), true);
        command.option({"--seed", "N", "Of the choice. Default 0"}, into(options.seed, 0));
      });
}

}  // namespace doppler::cli
