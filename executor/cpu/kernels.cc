#include "executor/cpu/kernels.h"

#include <memory>
#include <new>
#include <stdexcept>
#include <string>

#include "executor/cpu/step_kernels.h"
#include "graphs/error.h"

namespace doppler::cpu {
namespace {

void check_size(const NodeOperation& operation, std::size_t buffer, std::size_t bytes) {
  if (static_cast<std::int64_t>(bytes) == operation.buffers[buffer].bytes()) return;
  throw std::invalid_argument("node '" + operation.name + "': buffer " + std::to_string(buffer) +
                              " has " + std::to_string(bytes) + " bytes instead of " +
                              std::to_string(operation.buffers[buffer].bytes()));
}

}  // namespace

void run_operation(const NodeOperation& operation,
                   std::span<const std::span<const std::byte>> inputs,
                   std::span<std::byte> output) {
  if (operation.is_empty()) return;
  if (inputs.size() != operation.n_inputs()) {
    throw std::invalid_argument("node '" + operation.name + "' got " +
                                std::to_string(inputs.size()) + " inputs instead of " +
                                std::to_string(operation.n_inputs()));
  }
  Buffers buffers;
  buffers.read.reserve(operation.buffers.size());
  buffers.written.reserve(operation.buffers.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    check_size(operation, i, inputs[i].size());
    buffers.read.push_back(inputs[i].data());
    buffers.written.push_back(nullptr);
  }
  check_size(operation, operation.output(), output.size());
  buffers.read.push_back(output.data());
  buffers.written.push_back(output.data());
  std::vector<std::unique_ptr<std::byte[]>> scratch;
  for (std::size_t b = operation.output() + 1; b < operation.buffers.size(); ++b) {
    const auto bytes = static_cast<std::size_t>(operation.buffers[b].bytes());
    try {
      scratch.push_back(std::make_unique_for_overwrite<std::byte[]>(bytes));
    } catch (const std::bad_alloc&) {
      throw RunError("node '" + operation.name + "' needs " + std::to_string(bytes) +
                     " bytes of memory beside its inputs and output, which are not there; cut it "
                     "into more shards");
    }
    buffers.read.push_back(scratch.back().get());
    buffers.written.push_back(scratch.back().get());
  }
  for (const steps::Step& step : operation.steps) {
    std::visit([&](const auto& s) { run_step(s, buffers); }, step);
  }
}

}  // namespace doppler::cpu
