// How many bytes a placement so far needs on each device.
//
// A device holds the outputs of its nodes, a copy of each tensor that its nodes read from
// elsewhere, and the graph inputs that they read, each once. With Release::never nothing is given
// back, so that what fits here fits in every order of execution. With Release::after_last_reader a
// tensor and its copies go when the last of their readers is placed: an estimate, because nodes
// that are placed later may run earlier.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "env/partial_schedule.h"

namespace doppler {

class MemoryLedger {
 public:
  enum class Release : std::uint8_t { never, after_last_reader };

  // Memory: a bit for each device and tensor or input.
  MemoryLedger(std::shared_ptr<const PlacementModel> model, Release release);

  // Whether the device has room for what `node` would add. Requires placed predecessors.
  // O(tensors of the node, in and out).
  [[nodiscard]] bool fits(NodeId node, DeviceId device) const {
    return added_bytes(node, device) <= room(device);
  }
  [[nodiscard]] double room(DeviceId device) const;  // bytes; negative if overdrawn
  void place(NodeId node, DeviceId device);

 private:
  [[nodiscard]] double added_bytes(NodeId node, DeviceId device) const;
  [[nodiscard]] double output_bytes(NodeId node) const;
  [[nodiscard]] std::size_t bit(std::size_t item, DeviceId device) const {
    return item * used_.size() + device.index();
  }

  std::shared_ptr<const PlacementModel> model_;
  Release release_;
  std::vector<double> used_;                    // bytes by device
  std::vector<bool> held_;                      // [n_tensors, n_devices]
  std::vector<bool> input_held_;                // [n_inputs, n_devices]
  std::vector<std::int32_t> unplaced_readers_;  // by tensor
  std::vector<std::int32_t> input_first_;  // inputs that node v reads: [first[v], first[v + 1])
  std::vector<InputId> inputs_;
};

}  // namespace doppler
