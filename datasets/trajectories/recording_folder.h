// A data set on the disk, while it is recorded and afterwards.
//
//   ROOT/ID/data/main_data.hdf5, metadata.json   what Minari opens; made by build()
//   ROOT/ID/.parts/recording.json                what is recorded
//   ROOT/ID/.parts/000000000000.part, ...        finished episodes that are not built in yet
//
// HDF5 files have no journal: one that is being written when the machine stops is lost. So finished
// episodes go into part files, each written under a temporary name, synced and renamed, and the
// HDF5 file is made of them at the end, in the same way. Whatever stops a process at whatever
// moment, all episodes whose save() returned are there, and no other ones.
//
// A part: "DGTP", format (u32), hash of the recording (u64), number of the first episode (u64),
// CRC-32 of what follows (u32), to_bytes(episodes).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "datasets/trajectories/episode.h"

namespace doppler {

// What is recorded.
struct RecordingInfo {
  std::string id;        // check_dataset_id() accepts it
  std::string metadata;  // a JSON object: metadata.json without its totals
};

// Where things are.
struct DatasetPaths {
  std::string folder;
  explicit DatasetPaths(std::string its_folder) : folder(std::move(its_folder)) {}
  DatasetPaths(const std::string& root, const std::string& id) : folder(root + "/" + id) {}
  [[nodiscard]] std::string data() const { return folder + "/data"; }
  [[nodiscard]] std::string main() const { return data() + "/main_data.hdf5"; }
  [[nodiscard]] std::string metadata() const { return data() + "/metadata.json"; }
  [[nodiscard]] std::string parts() const { return folder + "/.parts"; }
  [[nodiscard]] std::string recording() const { return parts() + "/recording.json"; }
};

// For one thread at a time.
class RecordingFolder {
 public:
  // A new data set. Throws UsageError if there is one already, RunError if another process records
  // it or nothing can be written.
  static RecordingFolder create(const std::string& root, const RecordingInfo& info);
  // Goes on with it, or begins if there is none. Throws UsageError if what is there was recorded
  // otherwise; RunError for files that are damaged, foreign or of a newer version. Nothing is
  // changed then.
  static RecordingFolder resume(const std::string& root, const RecordingInfo& info);
  // What is there, for put_damaged_parts_aside() and build(). Throws RunError if there is nothing.
  static RecordingFolder open(const DatasetPaths& paths);
  ~RecordingFolder();
  RecordingFolder(RecordingFolder&&) noexcept;

  [[nodiscard]] const DatasetPaths& paths() const;
  // Episodes of the data set and of its parts.
  [[nodiscard]] std::int64_t n_episodes() const;
  [[nodiscard]] std::int64_t n_built() const;  // of the data set alone
  // "seed" of each, in their order; of an episode without one there is none.
  [[nodiscard]] const std::vector<std::uint64_t>& seeds() const;
  // On the disk when it returns. Throws RunError if it cannot be; earlier episodes are safe.
  void save(const std::vector<Episode>& episodes);
  // Makes the main file and metadata hold every episode. O(all) for a new file, O(new) and a copy
  // for one that is there.
  void build();
  // Parts that cannot be read are put aside as ID/NAME.damaged; their paths. For repair.
  std::vector<std::string> put_damaged_parts_aside();

 private:
  class State;
  explicit RecordingFolder(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace doppler
