#include "agents/plugin_agents.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>

#include "agents/agent.h"
#include "agents/plugin.h"
#include "graphs/error.h"

namespace doppler {
namespace {

constexpr std::size_t kMessageSize = 1024;
constexpr std::uint32_t kMostAgents = 1000;

// What a plugin sees of a task, and the evaluations that it has left.
class PluginProblem {
 public:
  PluginProblem(const PlacementModel& model, const AssignOptions& options)
      : model_(model), options_(options), simulator_(model.task().simulator()) {
    const Graph& graph = model.task().graph;
    const std::size_t n_devices = model.n_devices();
    compute_.reserve(graph.n_nodes() * n_devices);
    for (std::size_t v = 0; v < graph.n_nodes(); ++v) {
      for (std::size_t d = 0; d < n_devices; ++d) {
        compute_.push_back(model.costs().compute(NodeId(static_cast<std::int64_t>(v)),
                                                 DeviceId(static_cast<std::int64_t>(d))));
      }
    }
    for (std::size_t e = 0; e < graph.n_edges(); ++e) {
      const EdgeId edge(static_cast<std::int64_t>(e));
      from_.push_back(graph.tensor_producer(graph.edge_tensor(edge)).value);
      to_.push_back(graph.edge(edge).reader.value);
      bytes_.push_back(graph.edge_bytes(edge));
      tensor_.push_back(graph.edge_tensor(edge).value);
    }
    problem_.size = sizeof(problem_);
    problem_.n_nodes = static_cast<std::int64_t>(graph.n_nodes());
    problem_.n_edges = static_cast<std::int64_t>(graph.n_edges());
    problem_.n_devices = static_cast<std::int64_t>(n_devices);
    problem_.compute = compute_.data();
    problem_.edge_from = from_.data();
    problem_.edge_to = to_.data();
    problem_.edge_bytes = bytes_.data();
    problem_.edge_tensor = tensor_.data();
    problem_.seed = options.seed;
    problem_.max_evaluations = options.max_evaluations;
    problem_.max_seconds = options.max_seconds;
    problem_.transfer = &PluginProblem::transfer;
    problem_.evaluate = &PluginProblem::evaluate;
    problem_.host = this;
  }
  PluginProblem(const PluginProblem&) = delete;
  PluginProblem& operator=(const PluginProblem&) = delete;

  [[nodiscard]] const doppler_problem* get() const { return &problem_; }

  // The decision for an assignment that the plugin returned.
  Decision decision(std::span<const std::int32_t> devices) const {
    Decision result;
    for (const std::int32_t device : devices) result.assignment.devices.emplace_back(device);
    result.evaluations = n_used_;
    if (n_used_ > 0 && result.assignment.devices == last_) result.makespan = last_makespan_;
    return result;
  }

 private:
  static PluginProblem& self(const doppler_problem* problem) {
    return *static_cast<PluginProblem*>(problem->host);
  }

  static double transfer(const doppler_problem* problem, double bytes, std::int32_t from,
                         std::int32_t to) {
    const PluginProblem& own = self(problem);
    if (!own.is_device(from) || !own.is_device(to)) return std::nan("");
    return from == to ? 0 : own.model_.transfer(bytes, DeviceId(from), DeviceId(to));
  }

  static double evaluate(const doppler_problem* problem, const std::int32_t* assignment) {
    PluginProblem& own = self(problem);
    const std::span devices(assignment, own.model_.n_nodes());
    const bool is_legal = std::all_of(devices.begin(), devices.end(),
                                      [&](std::int32_t device) { return own.is_device(device); });
    if (!is_legal || own.n_used_ >= own.options_.max_evaluations) return std::nan("");
    own.last_.clear();
    for (const std::int32_t device : devices) own.last_.emplace_back(device);
    own.last_makespan_ = own.simulator_.makespan(own.last_);
    ++own.n_used_;
    return own.last_makespan_;
  }

  [[nodiscard]] bool is_device(std::int32_t device) const {
    return device >= 0 && static_cast<std::size_t>(device) < model_.n_devices();
  }

  const PlacementModel& model_;
  const AssignOptions& options_;
  Simulator simulator_;
  std::vector<double> compute_;
  std::vector<std::int64_t> from_;
  std::vector<std::int64_t> to_;
  std::vector<double> bytes_;
  std::vector<std::int64_t> tensor_;
  doppler_problem problem_ = {};
  std::int64_t n_used_ = 0;
  std::vector<DeviceId> last_;
  double last_makespan_ = 0;
};

class PluginAgent final : public Agent {
 public:
  explicit PluginAgent(const doppler_plugin_agent& agent) : agent_(agent) {}
  [[nodiscard]] bool has_steps() const override { return false; }

  Decision decide(std::shared_ptr<const PlacementModel> model,
                  const AssignOptions& options) override {
    const PluginProblem problem(*model, options);
    std::vector<std::int32_t> devices(model->n_nodes(), -1);
    std::array<char, kMessageSize> message{};
    const int code = agent_.decide(problem.get(), devices.data(), message.data(), message.size());
    message.back() = '\0';
    if (code != 0) {
      throw RunError("agent '" + std::string(agent_.name) + "' of a plugin failed with code " +
                     std::to_string(code) + (message[0] == '\0' ? "" : ": ") + message.data());
    }
    return problem.decision(devices);
  }

 private:
  const doppler_plugin_agent& agent_;
};

AgentEntry entry_of(const doppler_plugin_agent& agent, const std::string& path) {
  if (agent.name == nullptr || agent.decide == nullptr) {
    throw RunError(path + ": an agent of the plugin has no name or no decide()");
  }
  AgentEntry entry;
  entry.name = agent.name;
  entry.summary = agent.summary == nullptr ? "" : agent.summary;
  entry.source = "plugin " + path;
  entry.family = agent.kind == nullptr ? "other" : agent.kind;
  entry.deterministic = agent.deterministic != 0;
  if (NamedCall::parse(entry.name).name != entry.name) {
    throw UsageError(path + ": '" + entry.name +
                     "' is no name of an agent; use letters, digits and \"_-.+\"");
  }
  entry.make = [&agent](const Parameters&) { return std::make_unique<PluginAgent>(agent); };
  return entry;
}

}  // namespace

std::vector<std::string> register_plugin(const std::string& path) {
  // Without a slash the loader would look in the system's folders.
  const std::string file = path.find('/') == std::string::npos ? "./" + path : path;
  void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    throw RunError(path + ": cannot be loaded as a plugin: " + dlerror());
  }
  const auto entry = reinterpret_cast<doppler_plugin_entry>(dlsym(library, DOPPLER_PLUGIN_ENTRY));
  if (entry == nullptr) {
    throw RunError(path + ": this is no plugin: it exports no " DOPPLER_PLUGIN_ENTRY
                          " (agents/plugin.h)");
  }
  const doppler_plugin* plugin = entry();
  if (plugin == nullptr || plugin->version != DOPPLER_PLUGIN_VERSION) {
    throw RunError(path + ": the plugin has version " +
                   (plugin == nullptr ? "none" : std::to_string(plugin->version)) +
                   " of the interface; this build has " + std::to_string(DOPPLER_PLUGIN_VERSION));
  }
  if (plugin->agents == nullptr || plugin->n_agents == 0 || plugin->n_agents > kMostAgents) {
    throw RunError(path + ": the plugin has no agents, or more than " +
                   std::to_string(kMostAgents));
  }
  std::vector<std::string> names;
  for (std::uint32_t i = 0; i < plugin->n_agents; ++i) {
    register_agent(entry_of(plugin->agents[i], path));
    names.emplace_back(plugin->agents[i].name);
  }
  return names;
}

}  // namespace doppler
