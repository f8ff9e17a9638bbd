#include "cli/problem.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "datasets/clusters.h"
#include "datasets/tasks.h"
#include "graphs/cluster_format.h"
#include "graphs/error.h"
#include "graphs/file.h"
#include "graphs/formats.h"

namespace doppler::cli {
namespace {

// Runs `parse` on an option's value; a mistake names the option.
template <class Parse>
auto parse_option(const std::string& name, Parse parse) {
  try {
    return parse();
  } catch (const UsageError& error) {
    throw UsageError(name + ": " + error.what());
  }
}

Cluster with_streams(const Cluster& cluster, std::int64_t streams) {
  ClusterParts parts = cluster.parts();
  for (Device& device : parts.devices) device.streams = static_cast<std::int32_t>(streams);
  return Cluster(std::move(parts));
}

std::vector<DeviceId> input_devices(const std::string& where, const Task& task) {
  if (where == "replicated") return {};
  std::int64_t device = 0;
  const auto last = static_cast<std::int64_t>(task.cluster.n_devices()) - 1;
  try {
    into(device, 0, last)("--inputs", {where});
  } catch (const UsageError& error) {
    throw UsageError(std::string(error.what()) +
                     "; or 'replicated' for inputs that lie on every device");
  }
  return std::vector<DeviceId>(task.graph.n_inputs(), DeviceId{device});
}

// `enforced` is the cluster's own wish, which `--profile` and raw costs do not change.
void apply(const SettingOptions& settings, Task& task) {
  RunOptions& options = task.options;
  if (settings.network) {
    options.network = parse_option("--network", [&] { return parse_network(*settings.network); });
  }
  if (settings.choice) {
    options.choice = parse_option("--choice", [&] { return parse_choice(*settings.choice); });
  }
  if (settings.schedule) {
    options.schedule =
        parse_option("--schedule", [&] { return parse_schedule(*settings.schedule); });
  }
  if (settings.noise) options.noise = *settings.noise;
  if (settings.enforce_memory) options.enforce_memory = *settings.enforce_memory;
  if (settings.streams) task.cluster = with_streams(task.cluster, *settings.streams);
  if (settings.profile) task.cost_model = CostModel::measured(read_profile(*settings.profile));
  if (settings.inputs) options.input_devices = input_devices(*settings.inputs, task);
  task.check();
}

}  // namespace

void add_setting_options(Command& command, SettingOptions& options) {
  command.group("Engine settings (default: those of the task)");
  command.option({"--network", "NAME",
                  "What transfers do to one another: independent, channel (one at a time on each "
                  "channel) or fair (shares of it). Default for a graph: channel"},
                 into(options.network));
  command.option({"--choice", "NAME",
                  "Which ready node of a device starts first: fifo, priority (largest b-level) or "
                  "random. Default for a graph: fifo"},
                 into(options.choice));
  command.option(
      {"--schedule", "NAME", "work_conserving or bulk_synchronous (a barrier after each level)"},
      into(options.schedule));
  command.option(
      {"--noise", "S", "Multiply each duration by exp(S z - S^2 / 2), z standard normal"},
      into(options.noise, 0.0, 10.0));
  command.option(
      {"--inputs", "WHERE",
       "Where graph inputs lie at the start: replicated (everywhere) or a device's number"},
      into(options.inputs));
  command.option({"--streams", "N", "Compute slots of each device, instead of the cluster's"},
                 into(options.streams, 1, 1024));
  command.flags(
      "--enforce-memory", "--no-enforce-memory",
      "An assignment that needs more memory than a device has fails. Default for a graph: "
      "as the cluster says; off with raw costs",
      options.enforce_memory);
  command.option({"--profile", "FILE", "Measured costs, instead of the analytical model"},
                 into(options.profile));
}

void add_problem_options(Command& command, ProblemOptions& options) {
  command.group("Problem");
  command.option(
      {"--task", "NAME",
       "A registered task or any workload@cluster, such as 'chainmm(n=4096)@v100x8'; see "
       "doppler-gym tasks"},
      into(options.task));
  command.option({"--graph", "FILE", "A graph file of any readable format; - is standard input"},
                 into(options.graph));
  command.option(
      {"--cluster", "NAME",
       "With --graph: a preset with parameters, 'uniform(4)', or a cluster file (.json)"},
      into(options.cluster));
  command.option({"--seed", "N", "Of all luck: noise, random choice, agents. Default 0"},
                 into(options.seed, 0));
  add_setting_options(command, options.settings);
}

Task make_problem(const ProblemOptions& options) {
  if (options.task && options.graph) {
    throw UsageError("--task and --graph exclude each other; give one");
  }
  if (!options.task && !options.graph) {
    throw UsageError("no problem; give --task NAME, or --graph FILE and --cluster NAME");
  }
  if (options.task && options.cluster) {
    throw UsageError("--cluster goes with --graph; a task names its own: workload@" +
                     *options.cluster);
  }
  Task task;
  if (options.task) {
    task = make_problem_of_task(*options.task, options.settings);
  } else {
    if (!options.cluster) {
      throw UsageError("--graph needs --cluster, such as --cluster 'uniform(4)' or p100x4");
    }
    task = make_problem_of_graph(*options.graph, *options.cluster, options.settings);
  }
  task.options.seed = static_cast<std::uint64_t>(options.seed);
  return task;
}

Task make_problem_of_task(const std::string& spelling, const SettingOptions& settings) {
  Task task = parse_option("--task", [&] { return make_task(spelling); });
  apply(settings, task);
  return task;
}

Task make_problem_of_graph(const std::string& path, const std::string& cluster,
                           const SettingOptions& settings) {
  Task task;
  task.cluster = parse_option("--cluster", [&] { return make_cluster(cluster); });
  task.graph = load_graph(path);
  const std::string file = std::filesystem::path(path).filename().string();
  task.name = (path == "-" ? "standard-input" : file) + "@" + cluster;
  task.cost_model = CostModel::of(task.graph);
  task.options.enforce_memory = task.cluster.parts().enforce_memory && !has_raw_costs(task);
  apply(settings, task);
  return task;
}

Graph load_graph(const std::string& path) {
  if (path != "-") return read_graph(path);
  return parse_graph(read_standard_input(), "standard input");
}

Assignment load_assignment(const std::string& path, const Task& task) {
  Assignment assignment = read_assignment(path);
  try {
    assignment.check(task.graph, task.cluster);
  } catch (const InvalidError& error) {
    throw InvalidError(path + ": " + error.what());
  }
  return assignment;
}

bool has_raw_costs(const Task& task) { return task.cost_model.kind() == CostModel::Kind::raw; }

nlohmann::json settings_json(const Task& task) {
  const RunOptions& options = task.options;
  return {
      {"network", to_string(options.network)},
      {"choice", to_string(options.choice)},
      {"schedule", to_string(options.schedule)},
      {"noise", options.noise},
      {"inputs", options.input_devices.empty() ? nlohmann::json("replicated")
                                               : nlohmann::json(options.input_devices[0].value)},
      {"enforce_memory", options.enforce_memory},
      {"costs", has_raw_costs(task)                                  ? "raw"
                : task.cost_model.kind() == CostModel::Kind::profile ? "profile"
                                                                     : "analytical"}};
}

std::string settings_text(const Task& task) {
  const nlohmann::json settings = settings_json(task);
  std::string text;
  for (const char* name : {"network", "choice", "schedule", "costs"}) {
    text +=
        (text.empty() ? "" : ", ") + std::string(name) + " " + settings[name].get<std::string>();
  }
  if (task.options.noise > 0) text += ", noise " + settings["noise"].dump();
  if (task.options.enforce_memory) text += ", memory enforced";
  return text;
}

}  // namespace doppler::cli
