// What goes into and out of an environment: names, shapes, types and bounds, stated once. Every
// space of every binding is derived from these.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graphs/graph.h"

namespace doppler {

// One array of an observation. A regular value.
struct ArraySpec {
  std::string name;
  std::vector<std::int64_t> shape;
  DType dtype = DType::float32;  // float32, int32 or int8
  double low = 0;                // inclusive bounds of every element; finite
  double high = 0;
  bool is_static = false;  // the same array from reset to reset
  std::string summary;     // what an element means, with its unit

  [[nodiscard]] std::size_t n_elements() const;
  [[nodiscard]] std::size_t n_bytes() const;
  friend bool operator==(const ArraySpec&, const ArraySpec&) = default;
};

// The action space: one number (Discrete) or several (MultiDiscrete).
struct ActionSpec {
  std::vector<std::int64_t> sizes;  // number i lies in [0, sizes[i])
  bool discrete = true;             // one number; then sizes has one element
  // Elements of the flat action mask: the sum of the sizes.
  [[nodiscard]] std::size_t mask_size() const;
  friend bool operator==(const ActionSpec&, const ActionSpec&) = default;
};

// A regular value.
struct EnvSpec {
  ActionSpec action;
  std::vector<ArraySpec> observations;
  std::int64_t max_steps = 0;  // legal steps of the longest episode

  // The place of an array by name. Throws UsageError that lists the names.
  [[nodiscard]] std::size_t index(const std::string& name) const;
  friend bool operator==(const EnvSpec&, const EnvSpec&) = default;
};

}  // namespace doppler
