// One device for each node.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graphs/cluster.h"
#include "graphs/graph.h"
#include "graphs/ids.h"

namespace doppler {

// A regular value: devices[v] is the device of node v, in the user's order of nodes.
struct Assignment {
  std::vector<DeviceId> devices;

  Assignment() = default;
  explicit Assignment(std::vector<DeviceId> device_of_node) : devices(std::move(device_of_node)) {}
  // Every node on one device.
  Assignment(std::size_t n_nodes, DeviceId device) : devices(n_nodes, device) {}

  [[nodiscard]] std::size_t size() const { return devices.size(); }
  DeviceId& operator[](NodeId node) { return devices[node.index()]; }
  DeviceId operator[](NodeId node) const { return devices[node.index()]; }

  // Throws InvalidError that names the first node without a device of the cluster, or the lengths.
  void check(const Graph& graph, const Cluster& cluster) const;
  [[nodiscard]] std::uint64_t hash() const;  // the same on every machine

  friend bool operator==(const Assignment&, const Assignment&) = default;
  friend std::ostream& operator<<(std::ostream& out, const Assignment& assignment);
};

// `{"assignment": [device of each node in file order]}`. Throws ParseError with file and place;
// other fields are refused. Whether the devices exist is for check().
Assignment read_assignment(const std::string& path);
// The same from memory; `source` stands for the file in messages.
Assignment parse_assignment(std::string_view content, const std::string& source);
std::string to_json(const Assignment& assignment);

}  // namespace doppler
