// A plugin whose agents do all that an agent should not.
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "agents/plugin.h"

namespace {

void fill(const doppler_problem* problem, std::int32_t* assignment, std::int32_t device) {
  for (std::int64_t node = 0; node < problem->n_nodes; ++node) assignment[node] = device;
}

int crash(const doppler_problem*, std::int32_t*, char*, std::size_t) { std::abort(); }

int leave(const doppler_problem*, std::int32_t*, char*, std::size_t) { std::_Exit(0); }

int hang(const doppler_problem*, std::int32_t*, char*, std::size_t) {
  std::atomic<int> n = 0;
  for (;;) ++n;
}

int devour(const doppler_problem* problem, std::int32_t* assignment, char*, std::size_t) {
  std::vector<std::vector<char>> eaten;
  for (int i = 0; i < 64; ++i) eaten.emplace_back(64U << 20U, 1);  // 4 GiB
  fill(problem, assignment, 0);
  return 0;
}

int nowhere(const doppler_problem* problem, std::int32_t* assignment, char*, std::size_t) {
  fill(problem, assignment, static_cast<std::int32_t>(problem->n_devices));
  return 0;
}

int give_up(const doppler_problem*, std::int32_t*, char* message, std::size_t size) {
  std::snprintf(message, size, "no idea");
  return 7;
}

// Takes more evaluations than it may; those beyond the budget give NaN and count nothing.
int greedy(const doppler_problem* problem, std::int32_t* assignment, char* message,
           std::size_t size) {
  fill(problem, assignment, 0);
  for (std::int64_t i = 0; i < problem->max_evaluations; ++i) {
    if (std::isnan(problem->evaluate(problem, assignment))) return 1;
  }
  if (!std::isnan(problem->evaluate(problem, assignment))) {
    std::snprintf(message, size, "an evaluation beyond the budget");
    return 2;
  }
  assignment[0] = -1;
  if (!std::isnan(problem->evaluate(problem, assignment))) return 3;
  assignment[0] = 0;
  return 0;
}

// All evaluations, and then another assignment than the last one that was run.
int overdraw(const doppler_problem* problem, std::int32_t* assignment, char*, std::size_t) {
  fill(problem, assignment, 0);
  for (std::int64_t i = 0; i < problem->max_evaluations; ++i) {
    problem->evaluate(problem, assignment);
  }
  fill(problem, assignment, 1);
  return 0;
}

const doppler_plugin_agent kAgents[] = {
    {"crash", "", "other", 1, crash},     {"leave", "", "other", 1, leave},
    {"hang", "", "other", 1, hang},       {"devour", "", "other", 1, devour},
    {"nowhere", "", "other", 1, nowhere}, {"give-up", "", "other", 1, give_up},
    {"greedy", "", "other", 1, greedy},   {"overdraw", "", "other", 1, overdraw}};
const doppler_plugin kPlugin = {DOPPLER_PLUGIN_VERSION, sizeof(kAgents) / sizeof(kAgents[0]),
                                kAgents};
const doppler_plugin kFuture = {DOPPLER_PLUGIN_VERSION + 1, 1, kAgents};

}  // namespace

// With DOPPLER_TEST_PLUGIN=future it is one of a version to come; with =crash it crashes at once.
extern "C" const doppler_plugin* doppler_plugin_v1(void) {
  const char* mode = std::getenv("DOPPLER_TEST_PLUGIN");
  if (mode != nullptr && std::strcmp(mode, "crash") == 0) std::abort();
  return mode != nullptr && std::strcmp(mode, "future") == 0 ? &kFuture : &kPlugin;
}
