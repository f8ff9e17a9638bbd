// Data sets on the disk: finding, checking, summing up, mending, merging, splitting.
//
// Everything that reads takes data sets that Minari wrote as well, if their arrays are numbers.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "datasets/trajectories/episode_file.h"
#include "datasets/trajectories/recording_folder.h"

namespace doppler {

// Every data set at or below `path`, sorted: folders that hold "data" or a recording. Throws
// RunError if there is none.
std::vector<DatasetPaths> find_datasets(const std::string& path);
// The only one there. Throws RunError that names them if there are several.
DatasetPaths find_dataset(const std::string& path);

// A task as its recording names it.
struct RecordedTask {
  std::string name;
  std::uint64_t graph_hash = 0;
};

// What metadata.json says. Throws RunError for a file that is missing, damaged or newer.
class DatasetMetadata {
 public:
  explicit DatasetMetadata(const DatasetPaths& paths);

  [[nodiscard]] const std::string& id() const { return id_; }
  [[nodiscard]] std::int64_t total_episodes() const { return total_episodes_; }
  [[nodiscard]] std::int64_t total_steps() const { return total_steps_; }
  // The spaces as texts; empty: as the environment's.
  [[nodiscard]] const std::string& observation_space() const { return observation_space_; }
  [[nodiscard]] const std::string& action_space() const { return action_space_; }
  // Arrays of the observation and action spaces as episodes hold them, "observations/x"; empty for
  // spaces that are not stated or not of numbers.
  [[nodiscard]] const std::vector<ArrayLayout>& arrays() const { return arrays_; }
  // Its tasks, as doppler-gym records them; empty: not told.
  [[nodiscard]] const std::vector<RecordedTask>& tasks() const { return tasks_; }
  // The whole document.
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  std::string text_;
  std::string id_;
  std::int64_t total_episodes_ = 0;
  std::int64_t total_steps_ = 0;
  std::string observation_space_;
  std::string action_space_;
  std::vector<ArrayLayout> arrays_;
  std::vector<RecordedTask> tasks_;
};

struct DatasetCheck {
  std::int64_t n_episodes = 0;
  std::int64_t n_steps = 0;
  std::int64_t n_waiting = 0;       // finished episodes in parts
  std::vector<std::string> faults;  // what is wrong, where, and how to mend it; empty: nothing
};
// Reads everything: totals, each episode's arrays against the spaces, its lengths and its end.
DatasetCheck check_dataset(const DatasetPaths& paths);

struct DatasetStatistics {
  std::string id = {};
  std::int64_t n_episodes = 0;
  std::int64_t n_steps = 0;
  std::int64_t shortest = 0;  // steps
  std::int64_t longest = 0;
  std::int64_t bytes = 0;  // of the main file
  std::vector<std::string> tasks = {};
  std::vector<double> returns = {};    // of episodes that tell it
  std::vector<double> makespans = {};  // seconds; infinity: out of memory
};
DatasetStatistics dataset_statistics(const DatasetPaths& paths);

struct RepairResult {
  std::int64_t n_episodes = 0;     // of the data set now
  std::vector<std::string> notes;  // what was done, and what is lost
};
// Builds finished episodes in and corrects totals that are behind. Damaged parts are put aside.
// Throws RunError for a main file that is damaged: nothing is written over it.
RepairResult repair_dataset(const DatasetPaths& paths);
// Copies every episode that is whole into a new data set of the same id below another root. The
// old one is left as it is.
RepairResult recover_dataset(const DatasetPaths& paths, const std::string& root);

// Copies all episodes, in order, into a new data set. Throws UsageError unless the spaces are
// equal.
std::int64_t merge_datasets(const std::vector<DatasetPaths>& sources, const std::string& root,
                            const std::string& id);

// One part of a split.
struct SplitPart {
  std::string id;
  std::int64_t n_episodes = 0;
};
// Copies each episode into at most one of the parts, chosen at random from the seed; within a part
// they keep their order. Throws UsageError if the parts want more episodes than there are.
void split_dataset(const DatasetPaths& source, const std::string& root,
                   const std::vector<SplitPart>& parts, std::uint64_t seed);

}  // namespace doppler
