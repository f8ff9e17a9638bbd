#include "tests/support/compare.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>

namespace doppler::testing {
namespace {

bool close(double a, double b, double tolerance) {
  return a == b || std::abs(a - b) <= tolerance * std::max(std::abs(a), std::abs(b));
}

std::string of_node(std::size_t v, const NodeRun& a, const NodeRun& b, double tolerance) {
  if (a.device == b.device && a.slot == b.slot && close(a.ready, b.ready, tolerance) &&
      close(a.start, b.start, tolerance) && close(a.end, b.end, tolerance)) {
    return "";
  }
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

std::string of_transfer(std::size_t i, const TransferRun& a, const TransferRun& b,
                        double tolerance) {
  if (a.of_input == b.of_input && a.tensor == b.tensor && a.input == b.input && a.from == b.from &&
      a.to == b.to && a.channel == b.channel && a.bytes == b.bytes &&
      close(a.requested, b.requested, tolerance) && close(a.start, b.start, tolerance) &&
      close(a.end, b.end, tolerance)) {
    return "";
  }
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

std::string of_numbers(const std::string& what, double a, double b, double tolerance) {
  if (close(a, b, tolerance)) return "";
  std::ostringstream text;
  text.precision(std::numeric_limits<double>::max_digits10);
  text << what << ": " << a << " but " << b;
  return text.str();
}

}  // namespace

std::string difference(const Execution& a, const Execution& b, double tolerance) {
  constexpr double kSums = 1e-9;
  if (a.nodes.size() != b.nodes.size()) return "numbers of nodes";
  if (a.devices.size() != b.devices.size()) return "numbers of devices";
  for (std::size_t v = 0; v < a.nodes.size(); ++v) {
    const std::string text = of_node(v, a.nodes[v], b.nodes[v], tolerance);
    if (!text.empty()) return text;
  }
  for (std::size_t i = 0; i < std::min(a.transfers.size(), b.transfers.size()); ++i) {
    const std::string text = of_transfer(i, a.transfers[i], b.transfers[i], tolerance);
    if (!text.empty()) return text;
  }
  if (a.transfers.size() != b.transfers.size()) return "numbers of transfers";
  std::string text = of_numbers("makespan", a.makespan, b.makespan, tolerance);
  if (!text.empty()) return text;
  for (std::size_t d = 0; d < a.devices.size(); ++d) {
    const std::string device = " of device " + std::to_string(d);
    text = of_numbers("busy" + device, a.devices[d].busy, b.devices[d].busy, kSums);
    if (!text.empty()) return text;
    text = of_numbers("peak memory" + device, a.devices[d].peak_memory, b.devices[d].peak_memory,
                      kSums);
    if (!text.empty()) return text;
  }
  text = of_numbers("bytes moved", a.bytes_moved, b.bytes_moved, kSums);
  if (text.empty()) text = of_numbers("bytes local", a.bytes_local, b.bytes_local, kSums);
  if (!text.empty()) return text;
  if (a.out_of_memory.has_value() != b.out_of_memory.has_value()) return "out of memory or not";
  if (!a.out_of_memory) return "";
  if (a.out_of_memory->device != b.out_of_memory->device ||
      a.out_of_memory->available != b.out_of_memory->available) {
    return "which device is out of memory";
  }
  return of_numbers("memory needed", a.out_of_memory->needed, b.out_of_memory->needed, kSums);
}

}  // namespace doppler::testing
