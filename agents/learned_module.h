// The learned agents are a module of their own (agents/learned, which needs LibTorch), loaded when
// one of them is first asked for: without PyTorch everything else works.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "agents/training.h"

namespace doppler {

// What the program gives to the module.
struct LearnedHost {
  // The program's registry, which knows agents that the application registered.
  std::unique_ptr<Agent> (*make_agent)(std::string_view spelling);
};

// What the module gives to the program.
struct LearnedModule {
  std::unique_ptr<Agent> (*make_agent)(std::string_view name, const Parameters& parameters);
  std::unique_ptr<Trainer> (*make_trainer)(std::string_view name, const Parameters& parameters,
                                           const TrainProblem& problem);
};

// Of both sides; they must be equal. Types that cross the border have no version of their own, so
// both must come from one build.
struct ModuleVersion {
  const char* project;  // "0.1.0"
  std::size_t sizes;    // of types that cross the border
};
std::size_t sizes_across_border();

// The module's only symbol. Fills `version`; returns nullptr if the versions differ or the LibTorch
// that was loaded is another than it was compiled for, with the reason in `problem`.
extern "C" using LearnedEntryPoint =
    const LearnedModule *
    (*)(const LearnedHost& host, const ModuleVersion& version, std::string& problem);
inline constexpr const char* kLearnedEntryPoint = "doppler_learned_entry_point";
// The file beside the program, or beside the Python package's extension module.
inline constexpr const char* kLearnedFile = "doppler_learned.so";

// Loads the module at the first call. Throws RunError that says what is missing and how to mend it,
// at every call. Thread safe. The environment variable DOPPLER_LEARNED_MODULE names another file.
const LearnedModule& learned_module();
// Why learned_module() would throw; empty: it does not. Loads nothing: a module that is there but
// cannot be loaded counts as there.
std::string missing_learned_module();

// Every learned agent.
std::vector<AgentEntry> learned_entries();

}  // namespace doppler
