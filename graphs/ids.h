// Strong identifiers: a node is never mistaken for a device.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <ostream>

namespace doppler {

// An index into one kind of thing, counted from 0. A regular value of 4 bytes; default is 0. An
// index that 4 bytes cannot hold becomes -1, which names nothing and is refused like any wrong id.
template <class Tag>
struct Id {
  std::int32_t value = 0;

  constexpr Id() = default;
  constexpr explicit Id(std::int64_t index)
      : value(static_cast<std::int32_t>(index) == index ? static_cast<std::int32_t>(index) : -1) {}

  // The value as an index into an array.
  [[nodiscard]] constexpr std::size_t index() const { return static_cast<std::size_t>(value); }
  friend constexpr auto operator<=>(Id, Id) = default;
  friend std::ostream& operator<<(std::ostream& out, Id id) { return out << id.value; }
};

using NodeId = Id<struct NodeTag>;        // a node, in the order in which the user added it
using DeviceId = Id<struct DeviceTag>;    // a device of a cluster
using TensorId = Id<struct TensorTag>;    // an output tensor of a node, by node then output
using EdgeId = Id<struct EdgeTag>;        // an edge, in the order in which the user added it
using InputId = Id<struct InputTag>;      // a graph input (weight, activation)
using ChannelId = Id<struct ChannelTag>;  // what transfers contend for

}  // namespace doppler

template <class Tag>
struct std::hash<doppler::Id<Tag>> {
  std::size_t operator()(doppler::Id<Tag> id) const noexcept {
    return std::hash<std::int32_t>{}(id.value);
  }
};
