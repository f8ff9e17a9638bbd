#include "executor/run_options.h"

#include <cmath>
#include <ostream>
#include <string>

#include "graphs/enum_names.h"
#include "graphs/error.h"

namespace doppler {
namespace {

constexpr EnumName<Network> kNetworks[] = {
    {Network::independent, "independent"}, {Network::channel, "channel"}, {Network::fair, "fair"}};
constexpr EnumName<Choice> kChoices[] = {
    {Choice::fifo, "fifo"}, {Choice::priority, "priority"}, {Choice::random, "random"}};
constexpr EnumName<Schedule> kSchedules[] = {{Schedule::work_conserving, "work_conserving"},
                                             {Schedule::bulk_synchronous, "bulk_synchronous"}};

}  // namespace

std::string_view to_string(Network network) { return enum_name<Network>(kNetworks, network); }
std::string_view to_string(Choice choice) { return enum_name<Choice>(kChoices, choice); }
std::string_view to_string(Schedule schedule) { return enum_name<Schedule>(kSchedules, schedule); }
Network parse_network(std::string_view name) {
  return parse_enum<Network>(kNetworks, "network", name);
}
Choice parse_choice(std::string_view name) { return parse_enum<Choice>(kChoices, "choice", name); }
Schedule parse_schedule(std::string_view name) {
  return parse_enum<Schedule>(kSchedules, "schedule", name);
}

void RunOptions::check(const Graph& graph, const Cluster& cluster) const {
  if (!priorities.empty() && priorities.size() != graph.n_nodes()) {
    throw InvalidError("options have " + std::to_string(priorities.size()) + " priorities for " +
                       std::to_string(graph.n_nodes()) + " nodes; give one a node, or none");
  }
  for (std::size_t v = 0; v < priorities.size(); ++v) {
    if (std::isnan(priorities[v])) {
      throw InvalidError("the priority of node " + std::to_string(v) + " is not a number");
    }
  }
  if (!input_devices.empty() && input_devices.size() != graph.n_inputs()) {
    throw InvalidError("options have " + std::to_string(input_devices.size()) +
                       " input devices for " + std::to_string(graph.n_inputs()) +
                       " graph inputs; give one an input, or none for replicated inputs");
  }
  for (std::size_t i = 0; i < input_devices.size(); ++i) {
    if (input_devices[i].value < 0 || input_devices[i].index() >= cluster.n_devices()) {
      throw InvalidError("graph input " + std::to_string(i) + " lies on device " +
                         std::to_string(input_devices[i].value) + ", but the cluster has " +
                         std::to_string(cluster.n_devices()) + " devices, numbered from 0");
    }
  }
  if (!(noise >= 0 && noise <= 10)) {
    throw InvalidError("noise is " + std::to_string(noise) + "; it must lie in [0, 10]");
  }
}

std::ostream& operator<<(std::ostream& out, const RunOptions& options) {
  out << "network " << to_string(options.network) << ", choice " << to_string(options.choice)
      << ", schedule " << to_string(options.schedule) << ", noise " << options.noise << ", seed "
      << options.seed;
  if (!options.priorities.empty()) out << ", own priorities";
  if (!options.input_devices.empty()) out << ", placed inputs";
  if (options.enforce_memory) out << ", memory enforced";
  return out;
}

}  // namespace doppler
