// Every agent of this build, by name.
#include <utility>

#include "agents/agent.h"
#include "agents/heuristics/heuristics.h"
#include "agents/learned_module.h"
#include "agents/search/search.h"

namespace doppler {

namespace {

Registry<AgentEntry>& all_agents() {
  static Registry<AgentEntry> registry = [] {
    Registry<AgentEntry> built_in("agent");
    built_in.add(random_entry());
    built_in.add(round_robin_entry());
    built_in.add(single_device_entry());
    built_in.add(critical_path_entry());
    built_in.add(heft_entry());
    built_in.add(m_etf_entry());
    built_in.add(partner_list_entry());
    built_in.add(annealing_entry());
    built_in.add(enumerative_entry());
    built_in.add(local_search_entry());
    built_in.add(rule_search_entry());
    for (AgentEntry& entry : learned_entries()) built_in.add(std::move(entry));
    return built_in;
  }();
  return registry;
}

}  // namespace

const Registry<AgentEntry>& agents() { return all_agents(); }

void register_agent(AgentEntry entry) { all_agents().add(std::move(entry)); }

std::unique_ptr<Agent> make_agent(std::string_view spelling) {
  const NamedCall call = NamedCall::parse(spelling);
  const AgentEntry& entry = agents().at(call.name);
  return entry.make(Parameters(entry.parameters, call));
}

std::string canonical_agent(std::string_view spelling) {
  const NamedCall call = NamedCall::parse(spelling);
  return Parameters(agents().at(call.name).parameters, call).canonical();
}

std::map<std::string, ParameterValue> agent_parameters(std::string_view spelling) {
  const NamedCall call = NamedCall::parse(spelling);
  const AgentEntry& entry = agents().at(call.name);
  const Parameters parameters(entry.parameters, call);
  std::map<std::string, ParameterValue> values;
  for (const ParameterSpec& spec : entry.parameters) {
    std::visit(
        [&](const auto& default_value) {
          using T = std::decay_t<decltype(default_value)>;
          values[spec.name] = parameters.get<T>(spec.name);
        },
        spec.default_value);
  }
  return values;
}

}  // namespace doppler
