// The partial schedule and the device features of section 5, from their definitions: slow and
// obvious. Everything is looked up anew in the graph at each call.
#pragma once

#include <map>
#include <vector>

#include "env/task.h"

namespace doppler::testing {

class ReferenceSchedule {
 public:
  // Keeps a reference; the task must outlive it.
  explicit ReferenceSchedule(const Task& task) : task_(task), scale_(task.time_scale()) {}

  struct Run {
    DeviceId device;
    double start = 0;  // seconds
    double end = 0;    // seconds
  };
  [[nodiscard]] const std::map<NodeId, Run>& placed() const { return placed_; }
  void place(NodeId node, DeviceId device);

  [[nodiscard]] bool is_candidate(NodeId node) const;
  // All in seconds; DESIGN section 5.
  [[nodiscard]] double device_free(DeviceId device) const;
  [[nodiscard]] double data_ready(NodeId node, DeviceId device) const;
  [[nodiscard]] double earliest_start(NodeId node, DeviceId device) const;
  [[nodiscard]] double incoming(NodeId node, DeviceId device) const;
  [[nodiscard]] double partners(NodeId node, DeviceId device) const;
  [[nodiscard]] double siblings(NodeId node, DeviceId device) const;

  // The row of `device` in the observation "device_features" while `node` is placed: 5 numbers, or
  // 10 of the full set.
  [[nodiscard]] std::vector<double> device_features(NodeId node, DeviceId device, bool full) const;

 private:
  [[nodiscard]] double compute(NodeId node, DeviceId device) const;
  [[nodiscard]] double seconds(TensorId tensor, DeviceId from, DeviceId to) const;
  [[nodiscard]] double mean_seconds(TensorId tensor) const;
  [[nodiscard]] double total_compute(DeviceId device) const;

  const Task& task_;
  double scale_;  // seconds
  std::map<NodeId, Run> placed_;
  std::map<DeviceId, std::vector<double>> slots_;
};

}  // namespace doppler::testing
