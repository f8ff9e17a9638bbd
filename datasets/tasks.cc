#include "datasets/tasks.h"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <utility>

#include "datasets/clusters.h"
#include "datasets/workloads.h"
#include "embedded/published.h"
#include "graphs/formats.h"

namespace doppler {

namespace {

struct PublishedGraph {
  const char* name;
  std::int64_t n_devices;
};

constexpr std::array kPublished = {
    PublishedGraph{"chainmm", 4},       PublishedGraph{"ffnn", 4},
    PublishedGraph{"llama-block", 4},   PublishedGraph{"llama-layer", 4},
    PublishedGraph{"llama-block-8", 8}, PublishedGraph{"llama-layer-8", 8},
};

struct Registered {
  const char* workload;
  Split split;
  std::vector<const char*> clusters;
};

// By workload. A graph of the test split is met in training, if at all, on other machines; moe is
// not met at all. On clusters of rate 1 only workloads whose transfers weigh something are listed.
const std::vector<Registered>& registered() {
  static const std::vector<Registered> list = {
      {"chainmm", Split::none, {"p100x4", "p100x8", "v100x8"}},
      {"ffnn", Split::none, {"p100x4", "p100x8", "v100x8"}},
      {"llama-block", Split::none, {"p100x4", "p100x8", "v100x8"}},
      {"llama-layer", Split::none, {"p100x4", "p100x8", "v100x8"}},

      {"chainmm", Split::train, {"a100x8", "mixed"}},
      {"ffnn", Split::train, {"uniform", "a100x8", "mixed"}},
      {"ffnn-train", Split::train, {"uniform", "p100x4", "v100x8", "a100x8"}},
      {"llama-block", Split::train, {"uniform", "a100x8"}},
      {"llama-stack", Split::train, {"v100x8", "a100x8"}},
      {"random-dag", Split::train, {"p100x4", "v100x8", "a100x8"}},

      {"chainmm", Split::test, {"h100x8"}},
      {"ffnn", Split::test, {"mesh", "h100x8"}},
      {"ffnn-train", Split::test, {"mixed", "h100x8"}},
      {"llama-block", Split::test, {"ring", "mixed", "h200x8"}},
      {"llama-layer", Split::test, {"a100x8", "h100x8", "h200x8", "mesh"}},
      {"llama-stack", Split::test, {"h100x8", "h200x8"}},
      {"moe", Split::test, {"v100x8", "a100x8", "h100x8", "h200x8"}},
      {"random-dag", Split::test, {"mixed", "h200x8"}},
  };
  return list;
}

std::string_view published_content(const std::string& name) {
  for (const embedded::File& file : embedded::published()) {
    if (file.name == name + ".json") return file.content;
  }
  throw std::logic_error("the published graph '" + name + "' was not compiled in");
}

TaskEntry published_entry(const PublishedGraph& published) {
  TaskEntry entry;
  entry.name = "published/" + std::string(published.name);
  entry.summary = "the paper's own graph with raw costs on " + std::to_string(published.n_devices) +
                  " uniform devices, transfers independent";
  entry.source = "Yao et al., DOPPLER, 2025; CC BY 4.0, github.com/xinyuyao/Doppler";
  entry.make = [name = std::string(published.name), n_devices = published.n_devices] {
    Task task{.name = "published/" + name,
              .graph = parse_graph_json(published_content(name), name + ".json"),
              .cluster = Cluster::uniform(n_devices),
              .cost_model = CostModel::raw()};
    task.options.network = Network::independent;
    return task;
  };
  return entry;
}

// The part before the '@' and the part after it, looking past parentheses; nothing without one.
std::optional<std::pair<std::string_view, std::string_view>> split_at(std::string_view spelling) {
  int depth = 0;
  for (std::size_t i = 0; i < spelling.size(); ++i) {
    if (spelling[i] == '(') ++depth;
    if (spelling[i] == ')') --depth;
    if (spelling[i] == '@' && depth == 0) {
      return std::make_pair(spelling.substr(0, i), spelling.substr(i + 1));
    }
  }
  return std::nullopt;
}

std::string canonical_cluster(std::string_view spelling) {
  if (spelling.ends_with(".json")) return std::string(spelling);
  const NamedCall call = NamedCall::parse(spelling);
  return Parameters(clusters().at(call.name).parameters, call).canonical();
}

bool is_of_cores(const Cluster& cluster) {
  const auto& devices = cluster.parts().devices;
  return std::all_of(devices.begin(), devices.end(),
                     [](const Device& device) { return device.kind == "cpu"; });
}

// The call with sizes for processor cores where it leaves sizes out.
NamedCall with_core_sizes(const WorkloadEntry& entry, NamedCall call) {
  if (entry.core_sizes.empty()) return call;
  const Parameters given(entry.parameters, call);
  const NamedCall sizes = NamedCall::parse(entry.name + "(" + entry.core_sizes + ")");
  for (const auto& [name, value] : sizes.named) {
    if (!given.given(name)) call.named.emplace_back(name, value);
  }
  return call;
}

Task workload_on_cluster(std::string_view workload, std::string_view cluster) {
  Task task;
  task.cluster = make_cluster(cluster);
  NamedCall call = NamedCall::parse(workload);
  const WorkloadEntry& entry = workloads().at(call.name);
  if (is_of_cores(task.cluster)) call = with_core_sizes(entry, std::move(call));
  const Parameters parameters(entry.parameters, call);
  task.name = parameters.canonical() + "@" + canonical_cluster(cluster);
  task.graph = entry.make(parameters, static_cast<std::int64_t>(task.cluster.n_devices()));
  task.cost_model = CostModel::of(task.graph);
  task.options.enforce_memory = task.cluster.parts().enforce_memory;
  return task;
}

TaskEntry workload_entry(const std::string& workload, const std::string& cluster, Split split) {
  TaskEntry entry;
  entry.name = workload + "@" + cluster;
  entry.summary = workloads().at(workload).summary + ", on " + clusters().at(cluster).summary;
  entry.source = workloads().at(workload).source + "; " + clusters().at(cluster).source;
  entry.split = split;
  entry.make = [workload, cluster, split] {
    Task task = workload_on_cluster(workload, cluster);
    task.split = split;
    return task;
  };
  return entry;
}

}  // namespace

const Registry<TaskEntry>& tasks() {
  static const Registry<TaskEntry> registry = [] {
    Registry<TaskEntry> all("task");
    for (const PublishedGraph& published : kPublished) all.add(published_entry(published));
    for (const Registered& group : registered()) {
      for (const char* cluster : group.clusters) {
        all.add(workload_entry(group.workload, cluster, group.split));
      }
    }
    return all;
  }();
  return registry;
}

Task make_task(std::string_view spelling) {
  if (tasks().contains(spelling)) return tasks().at(spelling).make();
  const auto parts = split_at(spelling);
  if (!parts) {
    if (workloads().contains(spelling.substr(0, spelling.find('(')))) {
      throw UsageError("task '" + std::string(spelling) + "' names no cluster; write " +
                       std::string(spelling) + "@CLUSTER, as in " + std::string(spelling) +
                       "@p100x4");
    }
    throw_unknown_name("task", spelling, tasks().names());
  }
  Task task = workload_on_cluster(parts->first, parts->second);
  if (tasks().contains(task.name)) task.split = tasks().at(task.name).split;
  return task;
}

void check_training_tasks(const std::vector<std::string>& training_tasks) {
  for (const std::string& name : training_tasks) {
    Task task = make_task(name);
    task.name = name;
    check_training_tasks(std::span(&task, 1));
  }
}

void check_training_tasks(std::span<const Task> training_tasks) {
  struct Known {
    std::uint64_t graph = 0;
    std::uint64_t cluster = 0;
    std::string name;
  };
  static const std::vector<Known> test_tasks = [] {
    std::vector<Known> result;
    for (const auto& [name, entry] : tasks()) {
      if (entry.split != Split::test) continue;
      const Task task = entry.make();
      result.push_back({task.graph.hash(), task.cluster.hash(), name});
    }
    return result;
  }();
  for (const Task& task : training_tasks) {
    for (const Known& known : test_tasks) {
      if (task.graph.hash() != known.graph || task.cluster.hash() != known.cluster) continue;
      throw UsageError("task '" + task.name + "' " +
                       (task.name == known.name ? "" : "equals '" + known.name + "', which ") +
                       "is of the test split, which no agent may train on; train on a task of the "
                       "split train or none");
    }
  }
}

}  // namespace doppler
