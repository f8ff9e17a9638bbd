#include "tests/support/compare.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>

namespace doppler::testing {
namespace {

// Equal but for the order in which a sum was added up.
bool close(double a, double b) {
  return a == b || std::abs(a - b) <= 1e-9 * std::max(std::abs(a), std::abs(b));
}

std::string of_node(std::size_t v, const NodeRun& a, const NodeRun& b) {
  if (a == b) return "";
  std::ostringstream text;
  text.precision(std::numeric_limits<double>::max_digits10);
  const auto print = [&](const NodeRun& run) {
    text << "device " << run.device << " slot " << run.slot << " ready " << run.ready << " start "
         << run.start << " end " << run.end;
  };
  text << "node " << v << ": ";
  print(a);
  text << " but ";
  print(b);
  return text.str();
}

std::string of_transfer(std::size_t i, const TransferRun& a, const TransferRun& b) {
  if (a == b) return "";
  std::ostringstream text;
  text.precision(std::numeric_limits<double>::max_digits10);
  const auto print = [&](const TransferRun& run) {
    text << (run.of_input ? "input " : "tensor ")
         << (run.of_input ? run.input.value : run.tensor.value) << " from " << run.from << " to "
         << run.to << " channel " << run.channel << " requested " << run.requested << " start "
         << run.start << " end " << run.end << " bytes " << run.bytes;
  };
  text << "transfer " << i << ": ";
  print(a);
  text << " but ";
  print(b);
  return text.str();
}

std::string of_sums(const std::string& what, double a, double b) {
  if (close(a, b)) return "";
  std::ostringstream text;
  text.precision(std::numeric_limits<double>::max_digits10);
  text << what << ": " << a << " but " << b;
  return text.str();
}

}  // namespace

std::string difference(const Execution& a, const Execution& b) {
  if (a.nodes.size() != b.nodes.size()) return "numbers of nodes";
  if (a.devices.size() != b.devices.size()) return "numbers of devices";
  for (std::size_t v = 0; v < a.nodes.size(); ++v) {
    const std::string text = of_node(v, a.nodes[v], b.nodes[v]);
    if (!text.empty()) return text;
  }
  for (std::size_t i = 0; i < std::min(a.transfers.size(), b.transfers.size()); ++i) {
    const std::string text = of_transfer(i, a.transfers[i], b.transfers[i]);
    if (!text.empty()) return text;
  }
  if (a.transfers.size() != b.transfers.size()) return "numbers of transfers";
  if (a.makespan != b.makespan) return "makespan";
  std::string text;
  for (std::size_t d = 0; d < a.devices.size(); ++d) {
    const std::string device = " of device " + std::to_string(d);
    text = of_sums("busy" + device, a.devices[d].busy, b.devices[d].busy);
    if (!text.empty()) return text;
    text = of_sums("peak memory" + device, a.devices[d].peak_memory, b.devices[d].peak_memory);
    if (!text.empty()) return text;
  }
  text = of_sums("bytes moved", a.bytes_moved, b.bytes_moved);
  if (text.empty()) text = of_sums("bytes local", a.bytes_local, b.bytes_local);
  if (!text.empty()) return text;
  if (a.out_of_memory.has_value() != b.out_of_memory.has_value()) return "out of memory or not";
  if (!a.out_of_memory) return "";
  if (a.out_of_memory->device != b.out_of_memory->device ||
      a.out_of_memory->available != b.out_of_memory->available) {
    return "which device is out of memory";
  }
  return of_sums("memory needed", a.out_of_memory->needed, b.out_of_memory->needed);
}

}  // namespace doppler::testing
