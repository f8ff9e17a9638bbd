// Turns rows, as they come, into a compressed episode.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "datasets/trajectories/episode.h"
#include "datasets/trajectories/row_deflate.h"

namespace doppler {

// One array of unknown length. For one thread.
class ArrayEncoder {
 public:
  explicit ArrayEncoder(ArrayLayout layout);  // throws InvalidError for a row beyond 1 GiB

  [[nodiscard]] const ArrayLayout& layout() const { return layout_; }
  [[nodiscard]] std::int64_t n_rows() const { return n_rows_; }
  // Requires layout().row_bytes() bytes.
  void add(std::span<const std::byte> row);
  // What was added since the last finish(); at least one row.
  EncodedArray finish();
  void clear();  // forgets it instead

 private:
  ArrayLayout layout_;
  std::int64_t rows_per_chunk_;
  RowDeflate deflate_;
  std::int64_t n_rows_ = 0;
  std::vector<std::string> chunks_;
  std::vector<std::byte> last_;  // row
  // Rows of a few bytes wait for the end of the episode; often they are those of the one before.
  bool waits_ = false;
  std::vector<std::byte> waiting_;
  std::vector<std::byte> known_;
  std::string known_stream_;

  std::string encode_waiting();
};

// The arrays of an episode but rewards, terminations and truncations, which all have.
struct EpisodeLayout {
  std::vector<ArrayLayout> observations;  // a row at the begin, and one a step
  std::vector<ArrayLayout> actions;       // a row a step
  // Arrays that are observations, too.
  std::vector<std::pair<std::string, std::string>> links = {};
};

// The rows of one instant, in the order of the layout.
using Rows = std::span<const std::span<const std::byte>>;

// One episode after another. For one thread.
class EpisodeEncoder {
 public:
  explicit EpisodeEncoder(EpisodeLayout layout);

  [[nodiscard]] std::int64_t n_steps() const { return rewards_.n_rows(); }
  [[nodiscard]] bool running() const { return running_; }
  // Forgets an episode that is under way.
  void begin(Rows observation);
  struct Outcome {
    double reward = 0;
    bool terminated = false;
    bool truncated = false;
  };
  // `observation` is the one after the step.
  void step(Rows action, const Outcome& outcome, Rows observation);
  // Without attributes and fixed arrays. Requires at least one step.
  Episode finish();

 private:
  std::vector<ArrayEncoder> observations_;
  std::vector<ArrayEncoder> actions_;
  std::vector<std::pair<std::string, std::string>> links_;
  ArrayEncoder rewards_;
  ArrayEncoder terminations_;
  ArrayEncoder truncations_;
  bool running_ = false;
};

// A whole array at once.
EncodedArray encode(const ArrayLayout& layout, std::span<const std::byte> rows);

}  // namespace doppler
