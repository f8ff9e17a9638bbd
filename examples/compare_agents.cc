// Compare agents on a task: makespans against what no assignment can beat.
#include <iomanip>
#include <iostream>

#include "agents/agent.h"
#include "datasets/tasks.h"

int main() {
  const doppler::Task task = doppler::make_task("llama-layer@p100x4");
  const double bound = task.lower_bound();
  std::cout << task << '\n';
  for (const char* name : {"single-device", "random", "critical-path", "heft", "partner-list"}) {
    const auto result = doppler::assign(*doppler::make_agent(name), task, {.seed = 1});
    std::cout << std::left << std::setw(15) << name << result.makespan * 1e3 << " ms, "
              << result.makespan / bound << " x the lower bound\n";
  }
}
