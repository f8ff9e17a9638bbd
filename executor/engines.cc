#include "executor/cpu/cpu_engine.h"
#include "executor/cuda/cuda_engine.h"
#include "executor/engine.h"
#include "executor/simulator/simulator_engine.h"

namespace doppler {

const Registry<EngineEntry>& engines() {
  static const Registry<EngineEntry> registry = [] {
    Registry<EngineEntry> built_in("engine");
    built_in.add(simulator_engine_entry());
    built_in.add(cpu_engine_entry());
    built_in.add(cuda_engine_entry());
    return built_in;
  }();
  return registry;
}

std::unique_ptr<Engine> make_engine(std::string_view spelling) {
  const NamedCall call = NamedCall::parse(spelling);
  const EngineEntry& entry = engines().at(call.name);
  return entry.make(Parameters(entry.parameters, call));
}

}  // namespace doppler
