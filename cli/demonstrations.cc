#include "cli/demonstrations.h"

#include <cstring>
#include <utility>

#include "datasets/trajectories/dataset_files.h"
#include "graphs/error.h"

namespace doppler::cli {
namespace {

class RecordedDemonstrations : public Demonstrations {
 public:
  RecordedDemonstrations(const DatasetPaths& paths,
                         std::vector<std::shared_ptr<const PlacementModel>> tasks)
      : tasks_(std::move(tasks)), reader_(paths.main()), episodes_(tasks_.size()) {
    const DatasetMetadata metadata(paths);
    for (std::int64_t i = 0; i < reader_.n_episodes(); ++i) note(metadata, i);
    for (std::size_t t = 0; t < tasks_.size(); ++t) {
      if (!episodes_[t].empty()) continue;
      std::string names;
      for (const RecordedTask& task : metadata.tasks()) {
        names += (names.empty() ? "" : ", ") + task.name;
      }
      throw UsageError("the data set " + metadata.id() + " has no finished episode of task '" +
                       tasks_[t]->task().name + "'" +
                       (names.empty() ? "" : "; its tasks are: " + names));
    }
  }

  [[nodiscard]] std::int64_t size(std::size_t task) const override {
    return static_cast<std::int64_t>(episodes_[task].size());
  }

  [[nodiscard]] Demonstration read(std::size_t task, std::int64_t number) const override {
    const std::int64_t episode = episodes_[task][static_cast<std::size_t>(number)];
    const auto placement = reader_.array(episode, "observations/placement");
    if (!placement || placement->layout.type != ElementType::int32) {
      fail(episode, "has no array observations/placement of int32");
    }
    const PlacementModel& model = *tasks_[task];
    const std::size_t n_nodes = model.n_nodes();
    const std::size_t width = placement->layout.row_bytes() / sizeof(std::int32_t);
    if (width < n_nodes) fail(episode, "has fewer nodes than the task");
    std::vector<std::int32_t> rows(placement->rows.size() / sizeof(std::int32_t));
    std::memcpy(rows.data(), placement->rows.data(), rows.size() * sizeof(std::int32_t));
    Demonstration result;
    const std::size_t last = rows.size() - width;
    for (std::size_t v = 0; v < n_nodes; ++v) {
      const std::int32_t device = rows[last + v];
      if (device < 0 || device >= static_cast<std::int32_t>(model.n_devices())) {
        fail(episode, "does not place every node on a device of the task");
      }
      result.assignment.devices.push_back(DeviceId{device});
    }
    result.order = order_of(rows, width, model);
    return result;
  }

 private:
  [[noreturn]] void fail(std::int64_t episode, const std::string& what) const {
    throw RunError(reader_.path() + ": episode " + std::to_string(episode) + " " + what +
                   "; it cannot be imitated");
  }

  // Finds the task of an episode, if it was finished.
  void note(const DatasetMetadata& metadata, std::int64_t episode) {
    const std::vector<RecordedTask>& recorded = metadata.tasks();
    const std::string* name = nullptr;
    bool finished = recorded.empty();  // of a data set of others this is not told
    const Attributes attributes = reader_.attributes(episode);
    for (const auto& [key, value] : attributes) {
      if (key == "task") name = std::get_if<std::string>(&value);
      if (key == "makespan") finished = true;
    }
    if (!finished) return;
    for (std::size_t t = 0; t < tasks_.size(); ++t) {
      bool fits = recorded.empty();
      for (const RecordedTask& task : recorded) {
        const bool is_it = name != nullptr ? task.name == *name : recorded.size() == 1;
        fits = fits || (is_it && task.graph_hash == tasks_[t]->task().graph.hash());
      }
      if (fits) episodes_[t].push_back(episode);
    }
  }

  static std::vector<NodeId> order_of(const std::vector<std::int32_t>& rows, std::size_t width,
                                      const PlacementModel& model) {
    std::vector<NodeId> order;
    const std::size_t n_rows = rows.size() / width;
    for (std::size_t t = 1; t < n_rows; ++t) {
      const std::int32_t* const now = rows.data() + t * width;
      const std::int32_t* const before = now - width;
      if (std::memcmp(now, before, model.n_nodes() * sizeof *now) == 0) continue;
      for (std::size_t v = 0; v < model.n_nodes(); ++v) {
        if (before[v] < 0 && now[v] >= 0) order.emplace_back(static_cast<std::int64_t>(v));
      }
    }
    // One a step, each after its predecessors; else the mode has no order of its own.
    const Graph& graph = model.task().graph;
    std::vector<bool> placed(model.n_nodes(), false);
    bool is_order = order.size() == model.n_nodes();
    for (std::size_t i = 0; is_order && i < order.size(); ++i) {
      for (NodeId node : graph.predecessors(order[i])) {
        is_order = is_order && placed[node.index()];
      }
      placed[order[i].index()] = true;
    }
    if (is_order) return order;
    const auto levels = model.b_level_order();
    return {levels.begin(), levels.end()};
  }

  std::vector<std::shared_ptr<const PlacementModel>> tasks_;
  EpisodeFileReader reader_;
  std::vector<std::vector<std::int64_t>> episodes_;  // by task
};

}  // namespace

std::shared_ptr<const Demonstrations> open_demonstrations(
    const std::string& path, const std::vector<std::shared_ptr<const PlacementModel>>& tasks) {
  return std::make_shared<const RecordedDemonstrations>(find_dataset(path), tasks);
}

void open_dataset(TrainingConfig& config, const TrainingTasks& tasks) {
  if (config.dataset.empty()) return;
  config.options.demonstrations = open_demonstrations(config.dataset, tasks);
}

}  // namespace doppler::cli
