#include "cli/chrome_trace.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <numeric>
#include <utility>
#include <vector>

#include "cli/json_text.h"
#include "cli/problem.h"

namespace doppler::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kLongestShown = 1000;  // seconds
constexpr double kMicroseconds = 1e6;

// Where a slice is drawn.
struct Track {
  std::int64_t process = 0;
  std::int64_t thread = 0;
};

class TraceWriter {
 public:
  TraceWriter(const Task& task, const Execution& execution)
      : task_(task), execution_(execution), channels_(n_devices()) {
    if (execution.makespan > kLongestShown) {
      shrink_ = std::pow(10, std::ceil(std::log10(execution.makespan / kLongestShown)));
    }
  }

  std::string write() {
    name_devices();
    add_nodes();
    add_transfers();
    Json other = {{"task", task_.name},
                  {"settings", settings_json(task_)},
                  {"makespan", execution_.makespan},
                  {"seconds_per_second_shown", shrink_}};
    return compact_json_text({{"displayTimeUnit", "ms"},
                              {"otherData", std::move(other)},
                              {"traceEvents", std::move(events_)}});
  }

 private:
  [[nodiscard]] std::int64_t n_devices() const {
    return static_cast<std::int64_t>(task_.cluster.n_devices());
  }
  [[nodiscard]] double shown(double seconds) const { return seconds / shrink_ * kMicroseconds; }

  void name_process(std::int64_t process, const std::string& name) {
    events_.push_back(
        {{"ph", "M"}, {"name", "process_name"}, {"pid", process}, {"args", {{"name", name}}}});
    events_.push_back({{"ph", "M"},
                       {"name", "process_sort_index"},
                       {"pid", process},
                       {"args", {{"sort_index", process}}}});
  }
  void name_thread(const Track& track, const std::string& name) {
    events_.push_back({{"ph", "M"},
                       {"name", "thread_name"},
                       {"pid", track.process},
                       {"tid", track.thread},
                       {"args", {{"name", name}}}});
    events_.push_back({{"ph", "M"},
                       {"name", "thread_sort_index"},
                       {"pid", track.process},
                       {"tid", track.thread},
                       {"args", {{"sort_index", track.thread}}}});
  }

  void name_devices() {
    for (std::int64_t d = 0; d < n_devices(); ++d) {
      const Device& device = task_.cluster.device(DeviceId{d});
      name_process(d, "device " + std::to_string(d) + " (" + device.kind + ")");
      for (std::int32_t slot = 0; slot < device.streams; ++slot) {
        name_thread({d, slot}, "slot " + std::to_string(slot));
      }
    }
  }

  void add_slice(const Track& track, const std::string& name, std::pair<double, double> when,
                 Json details) {
    events_.push_back({{"ph", "X"},
                       {"name", name},
                       {"cat", track.process == channels_ ? "transfer" : "node"},
                       {"pid", track.process},
                       {"tid", track.thread},
                       {"ts", shown(when.first)},
                       {"dur", shown(when.second) - shown(when.first)},
                       {"args", std::move(details)}});
  }

  void add_nodes() {
    for (std::size_t v = 0; v < execution_.nodes.size(); ++v) {
      const NodeId node{static_cast<std::int64_t>(v)};
      const NodeRun& run = execution_.nodes[v];
      add_slice({run.device.value, run.slot}, std::string(task_.graph.name(node)),
                {run.start, run.end},
                {{"node", v},
                 {"kind", task_.graph.kind(node)},
                 {"ready", run.ready},
                 {"start", run.start},
                 {"end", run.end}});
    }
  }

  // The first thread of a channel that is free at `start`; a new one if there is none.
  Track transfer_track(const TransferRun& run) {
    auto& lanes = lanes_[run.channel];
    for (auto& [thread, free] : lanes) {
      if (free <= run.start) {
        free = run.end;
        return {channels_, thread};
      }
    }
    lanes.emplace_back(next_thread_, run.end);
    const Track track{channels_, next_thread_++};
    const std::string number = lanes.size() > 1 ? " (" + std::to_string(lanes.size()) + ")" : "";
    name_thread(track, task_.cluster.channel_name(run.channel) + number);
    return track;
  }

  // An arrow between two slices, from the start of one to the start of the other.
  void add_flow(const Track& from, double start, const Track& to, double end) {
    const auto end_point = [&](const char* phase, const Track& track, double when) -> Json {
      return {{"ph", phase},          {"name", "tensor"},    {"cat", "flow"},    {"id", next_flow_},
              {"pid", track.process}, {"tid", track.thread}, {"ts", shown(when)}};
    };
    events_.push_back(end_point("s", from, start));
    events_.push_back(end_point("f", to, end));
    events_.back()["bp"] = "e";
    ++next_flow_;
  }

  [[nodiscard]] Track node_track(NodeId node) const {
    const NodeRun& run = execution_.nodes[node.index()];
    return {run.device.value, run.slot};
  }

  // The nodes on the destination that wait for this transfer.
  [[nodiscard]] std::vector<NodeId> readers_of(const TransferRun& run) const {
    std::vector<NodeId> readers;
    const auto add = [&](NodeId reader) {
      if (execution_.nodes[reader.index()].device == run.to) readers.push_back(reader);
    };
    if (run.of_input) {
      for (NodeId reader : task_.graph.inputs()[run.input.index()].readers) add(reader);
      return readers;
    }
    for (EdgeId edge : task_.graph.out_edges(task_.graph.tensor_producer(run.tensor))) {
      if (task_.graph.edge_tensor(edge) == run.tensor) add(task_.graph.edge(edge).reader);
    }
    return readers;
  }

  [[nodiscard]] std::string transfer_name(const TransferRun& run) const {
    if (run.of_input) return task_.graph.inputs()[run.input.index()].name;
    return std::string(task_.graph.name(task_.graph.tensor_producer(run.tensor)));
  }

  void add_transfers() {
    if (execution_.transfers.empty()) return;
    name_process(channels_, "channels");
    std::vector<std::size_t> by_start(execution_.transfers.size());
    std::iota(by_start.begin(), by_start.end(), std::size_t{0});
    std::stable_sort(by_start.begin(), by_start.end(), [&](std::size_t a, std::size_t b) {
      return execution_.transfers[a].start < execution_.transfers[b].start;
    });
    for (std::size_t index : by_start) add_transfer(execution_.transfers[index]);
  }

  void add_transfer(const TransferRun& run) {
    const Track track = transfer_track(run);
    add_slice(track, transfer_name(run), {run.start, run.end},
              {{"from", run.from.value},
               {"to", run.to.value},
               {"bytes", run.bytes},
               {"requested", run.requested},
               {"start", run.start},
               {"end", run.end}});
    if (!run.of_input) {
      const NodeId producer = task_.graph.tensor_producer(run.tensor);
      add_flow(node_track(producer), execution_.nodes[producer.index()].start, track, run.start);
    }
    for (NodeId reader : readers_of(run)) {
      add_flow(track, run.start, node_track(reader), execution_.nodes[reader.index()].start);
    }
  }

  const Task& task_;
  const Execution& execution_;
  std::int64_t channels_;  // the process of all channels
  double shrink_ = 1;
  Json events_ = Json::array();
  // For each channel its threads, and when each is free.
  std::map<ChannelId, std::vector<std::pair<std::int64_t, double>>> lanes_;
  std::int64_t next_thread_ = 0;
  std::int64_t next_flow_ = 1;
};

}  // namespace

std::string chrome_trace(const Task& task, const Execution& execution) {
  return TraceWriter(task, execution).write();
}

}  // namespace doppler::cli
