// The module's only symbol: see agents/learned_module.h.
#include <ATen/Version.h>
#include <torch/version.h>

#include <cstring>

#include "agents/learned/learned.h"
#include "agents/learned_module.h"

namespace {

// "2.15.0" of the library that was loaded.
std::string loaded_torch() {
  const std::string config = at::show_config();
  constexpr std::string_view kKey = "TORCH_VERSION=";
  const auto at = config.find(kKey);
  if (at == std::string::npos) return "unknown";
  const auto begin = at + kKey.size();
  return config.substr(begin, config.find_first_of(", \n", begin) - begin);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const doppler::LearnedModule*
doppler_learned_entry_point(const doppler::LearnedHost& host, const doppler::ModuleVersion& version,
                            std::string& problem) {
  if (std::strcmp(version.project, DOPPLER_VERSION) != 0 ||
      version.sizes != doppler::sizes_across_border()) {
    problem = std::string("they come from another build (version ") + DOPPLER_VERSION +
              ") than this program (" + version.project + ")";
    return nullptr;
  }
  if (const std::string loaded = loaded_torch(); loaded != TORCH_VERSION) {
    problem =
        "they were built for PyTorch " TORCH_VERSION ", but PyTorch " + loaded + " was loaded";
    return nullptr;
  }
  doppler::set_learned_host(host);
  static const doppler::LearnedModule module = {.make_agent = &doppler::make_learned_agent,
                                                .make_trainer = &doppler::make_learned_trainer};
  return &module;
}
