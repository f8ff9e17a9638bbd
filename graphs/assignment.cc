#include "graphs/assignment.h"

#include <ostream>
#include <string>

#include "graphs/error.h"
#include "graphs/file.h"
#include "graphs/hash.h"
#include "graphs/json_stream.h"

namespace doppler {
namespace {

// {"assignment": [0, 1, ...]}
class AssignmentReader : public JsonStreamReader {
 public:
  using JsonStreamReader::JsonStreamReader;

  Assignment read() {
    parse();
    return Assignment(std::move(devices_));
  }

 private:
  enum Place { kDocument, kDevices };

  Container enter(bool is_object) override {
    if (depth() == 0) {
      static constexpr JsonField kFields[] = {{"assignment", true}};
      if (!is_object) fail("expected {\"assignment\": [device of each node]}, found an array");
      return {kDocument, JsonObject{"an assignment", kFields}};
    }
    if (place() == kDocument && !is_object) return {kDevices, std::nullopt};
    fail("'assignment' is an array of whole numbers, one device for each node");
  }

  void scalar(const JsonScalar& value) override {
    if (depth() == 0) fail("expected {\"assignment\": [device of each node]}");
    if (place() == kDocument) fail("'assignment' is an array, one device for each node");
    devices_.push_back(DeviceId{as_integer(value, "a device", 0, kLargestId)});
  }

  std::vector<DeviceId> devices_;
};

}  // namespace

void Assignment::check(const Graph& graph, const Cluster& cluster) const {
  if (devices.size() != graph.n_nodes()) {
    throw InvalidError("the assignment has " + std::to_string(devices.size()) +
                       " devices, the graph has " + std::to_string(graph.n_nodes()) +
                       " nodes; give one device for each node");
  }
  for (std::size_t v = 0; v < devices.size(); ++v) {
    if (devices[v].value < 0 || devices[v].index() >= cluster.n_devices()) {
      throw InvalidError("the assignment puts node " + std::to_string(v) + " on device " +
                         std::to_string(devices[v].value) + "; the cluster has devices 0 to " +
                         std::to_string(cluster.n_devices() - 1));
    }
  }
}

std::uint64_t Assignment::hash() const {
  Hasher hasher;
  hasher.add(static_cast<std::uint64_t>(devices.size()));
  for (DeviceId device : devices) hasher.add(static_cast<std::uint64_t>(device.value));
  return hasher.digest();
}

std::ostream& operator<<(std::ostream& out, const Assignment& assignment) {
  out << '[';
  for (std::size_t v = 0; v < assignment.size(); ++v) {
    out << (v > 0 ? " " : "") << assignment.devices[v];
  }
  return out << ']';
}

Assignment read_assignment(const std::string& path) {
  return parse_assignment(read_file(path), path);
}

Assignment parse_assignment(std::string_view content, const std::string& source) {
  return AssignmentReader(content, source).read();
}

std::string to_json(const Assignment& assignment) {
  std::string text = "{\"assignment\": [";
  for (std::size_t v = 0; v < assignment.size(); ++v) {
    text += (v > 0 ? ", " : "") + std::to_string(assignment.devices[v].value);
  }
  return text + "]}\n";
}

}  // namespace doppler
