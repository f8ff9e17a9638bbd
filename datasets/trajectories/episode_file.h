// Episodes in an HDF5 file as Minari lays them out: a group "episode_0", "episode_1", ... each.
//
//   episode_K           attributes id, total_steps, seed, makespan, ...
//     observations/...  [total_steps + 1, ...]
//     actions, rewards, terminations, truncations   [total_steps, ...]
//     infos/...         [total_steps + 1, ...]
//     static/...        what is the same in every step, one row; shared by the task's episodes
//
// Equal small arrays, and all static ones, are one object with several names (hard links).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "datasets/trajectories/episode.h"

namespace doppler {

// For one thread at a time.
class EpisodeFileWriter {
 public:
  // A new file, or one that exists, to which episodes are added. Throws RunError that names the
  // path. The file is whole only after close().
  static EpisodeFileWriter create(const std::string& path);
  static EpisodeFileWriter append(const std::string& path);
  ~EpisodeFileWriter();
  EpisodeFileWriter(EpisodeFileWriter&&) noexcept;

  [[nodiscard]] std::int64_t n_episodes() const;
  void add(const Episode& episode);
  // What the file has taken over of a recording: episodes with a smaller number are in it.
  void set_recorded(std::int64_t next_number);
  // Writes what is left and syncs it to the disk.
  void close();

 private:
  class State;
  explicit EpisodeFileWriter(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// Rows as they were recorded.
struct DecodedArray {
  ArrayLayout layout;
  std::int64_t n_rows = 0;
  std::string rows;
};

// For one thread at a time.
class EpisodeFileReader {
 public:
  // Throws RunError that names the path for what is no HDF5 file, or a damaged one.
  explicit EpisodeFileReader(const std::string& path);
  ~EpisodeFileReader();
  EpisodeFileReader(EpisodeFileReader&&) noexcept;

  [[nodiscard]] const std::string& path() const;
  [[nodiscard]] std::int64_t n_episodes() const;
  [[nodiscard]] std::int64_t recorded() const;  // see EpisodeFileWriter; 0: not told

  // Throws RunError that names the episode, for one that is missing, damaged or incomplete. The
  // arrays are decompressed and compressed again.
  Episode read(std::int64_t episode);
  [[nodiscard]] Attributes attributes(std::int64_t episode) const;
  [[nodiscard]] std::int64_t n_steps(std::int64_t episode) const;
  // One array; nothing if the episode has none of that path.
  [[nodiscard]] std::optional<DecodedArray> array(std::int64_t episode,
                                                  const std::string& path) const;

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace doppler
