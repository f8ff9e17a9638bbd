#include "tests/support/small_workloads.h"

#include <map>
#include <stdexcept>
#include <vector>

namespace doppler::testing {
namespace {

// `shards` is added.
const std::map<std::string, std::vector<std::string>>& small_parameters() {
  static const std::map<std::string, std::vector<std::string>> all = {
      {"chainmm", {"n=12", "n=17"}},
      {"ffnn", {"batch=16,inputs=4,hidden=12,outputs=3", "batch=37,inputs=5,hidden=19,outputs=7"}},
      {"ffnn-train",
       {"batch=16,inputs=4,hidden=12,outputs=3", "batch=37,inputs=5,hidden=19,outputs=7"}},
      {"llama-block",
       {"sequence=8,width=16,heads=4,hidden=12", "sequence=7,width=30,heads=5,hidden=23"}},
      {"llama-layer",
       {"sequence=8,width=16,heads=4,hidden=12,vocabulary=12",
        "sequence=7,width=30,heads=5,hidden=23,vocabulary=29"}},
      {"llama-stack",
       {"sequence=8,width=16,heads=4,hidden=12,vocabulary=12,layers=2",
        "sequence=5,width=18,heads=3,hidden=11,vocabulary=9,layers=3"}},
      {"moe",
       {"groups=8,tokens=6,width=6,hidden=8,experts=4,top_k=2,capacity=4",
        "groups=9,tokens=5,width=7,hidden=9,experts=3,top_k=1,capacity=1"}},
      {"random-dag",
       {"n=100,width=8", "n=100,shape=erdos,degree=3", "n=100,shape=series-parallel"}},
  };
  return all;
}

}  // namespace

Parameters parameters_of(const std::string& workload, const std::string& arguments) {
  const WorkloadEntry& entry = workloads().at(workload);
  return Parameters(entry.parameters, NamedCall::parse(workload + "(" + arguments + ")"));
}

void for_each_small(
    const std::function<void(const WorkloadEntry& entry, const std::string& arguments)>& visit) {
  for (const auto& [name, entry] : workloads()) {
    const auto found = small_parameters().find(name);
    if (found == small_parameters().end()) {
      throw std::logic_error("workload " + name + " needs small sizes in the tests");
    }
    for (const std::string& arguments : found->second) {
      for (const char* shards : {"1", "2", "3", "4"}) {
        visit(entry, arguments + ",shards=" + shards);
      }
    }
  }
}

}  // namespace doppler::testing
