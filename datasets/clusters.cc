#include "datasets/clusters.h"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string>

#include "embedded/clusters.h"
#include "graphs/cluster_format.h"

namespace doppler {
namespace {

struct Preset {
  const char* name;
  const char* summary;
  const char* source;
};

// The figures, each with its own source, are in datasets/clusters/NAME.json.
constexpr std::array kPresets = {
    Preset{"p100x4", "four P100 (16 GB) over PCIe 3.0", "vendor's data sheets and assumptions"},
    Preset{"p100x8", "eight P100 (16 GB) over PCIe 3.0", "vendor's data sheets and assumptions"},
    Preset{"v100x8", "eight V100 (32 GB), NVLink hybrid cube mesh, else PCIe 3.0",
           "vendor's data sheets, DGX-1 white paper and assumptions"},
    Preset{"a100x8", "eight A100 (80 GB) on an NVLink 3 switch",
           "vendor's data sheets and assumptions"},
    Preset{"h100x8", "eight H100 (80 GB) on an NVLink 4 switch",
           "vendor's data sheets and assumptions"},
    Preset{"h200x8", "eight H200 (141 GB) on an NVLink 4 switch",
           "vendor's data sheets and assumptions"},
    Preset{"mixed", "two V100 (32 GB) and two P100 (16 GB) over PCIe 3.0",
           "vendor's data sheets and assumptions"},
    Preset{"cpu2", "two CPU cores as devices", "measured by doppler-gym calibrate"},
};

std::string_view embedded_content(std::string_view file) {
  const auto files = embedded::clusters();
  const auto found =
      std::find_if(files.begin(), files.end(), [&](const auto& f) { return f.name == file; });
  if (found == files.end()) {
    throw std::logic_error("cluster file " + std::string(file) + " was not compiled in");
  }
  return found->content;
}

ClusterEntry preset_entry(const Preset& preset) {
  ClusterEntry entry;
  entry.name = preset.name;
  entry.summary = preset.summary;
  entry.source = preset.source;
  entry.make = [file = std::string(preset.name) + ".json"](const Parameters&) {
    return parse_cluster(embedded_content(file), file);
  };
  return entry;
}

ClusterEntry unit_entry(const char* name, const char* summary, Cluster (*make)(std::int64_t)) {
  ClusterEntry entry;
  entry.name = name;
  entry.summary = summary;
  entry.source = "own";
  entry.parameters = {{.name = "n",
                       .summary = "number of devices",
                       .default_value = std::int64_t{4},
                       .minimum = 1,
                       .maximum = 4096}};
  entry.make = [make](const Parameters& parameters) {
    return make(parameters.get<std::int64_t>("n"));
  };
  return entry;
}

Registry<ClusterEntry> make_registry() {
  Registry<ClusterEntry> registry("cluster");
  for (const Preset& preset : kPresets) registry.add(preset_entry(preset));
  registry.add(unit_entry("uniform", "n devices of rate 1, a link of bandwidth 1 for each pair",
                          Cluster::uniform));
  registry.add(unit_entry("ring", "n devices of rate 1 on a ring, links both ways", Cluster::ring));
  registry.add(unit_entry("mesh", "n devices of rate 1 on a two-dimensional grid, links both ways",
                          Cluster::mesh));
  return registry;
}

}  // namespace

const Registry<ClusterEntry>& clusters() {
  static const Registry<ClusterEntry> registry = make_registry();
  return registry;
}

Cluster make_cluster(std::string_view spelling) {
  if (spelling.ends_with(".json") || spelling.find('/') != std::string_view::npos) {
    return read_cluster(std::string(spelling));
  }
  const NamedCall call = NamedCall::parse(spelling);
  const ClusterEntry& entry = clusters().at(call.name);
  return entry.make(Parameters(entry.parameters, call));
}

}  // namespace doppler
