#include "datasets/trajectories/episode_encoder.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "graphs/error.h"

namespace doppler {
namespace {

constexpr std::size_t kChunkBytes = std::size_t{4} << 20;  // of rows, before compression
constexpr std::size_t kFewBytes = 16;                      // of a row
constexpr std::size_t kLongestRow = std::size_t{1} << 30;

std::size_t checked_row_bytes(const ArrayLayout& layout) {
  const std::size_t n = layout.row_bytes();
  if (n == 0 || n > kLongestRow) {
    throw InvalidError("array '" + layout.path + "' has " + std::to_string(n) +
                       " bytes a step; 1 byte to 1 GiB can be recorded");
  }
  return n;
}

}  // namespace

ArrayEncoder::ArrayEncoder(ArrayLayout layout)
    : layout_(std::move(layout)),
      rows_per_chunk_(static_cast<std::int64_t>(
          std::max<std::size_t>(1, kChunkBytes / checked_row_bytes(layout_)))),
      deflate_(layout_.row_bytes()),
      waits_(layout_.row_bytes() <= kFewBytes) {}

void ArrayEncoder::add(std::span<const std::byte> row) {
  if (waits_) {
    waiting_.insert(waiting_.end(), row.begin(), row.end());
    if (waiting_.size() < kChunkBytes / kFewBytes) {
      ++n_rows_;
      return;
    }
    // Too many to wait: they go the way of larger rows from here on, as do those of later episodes.
    waits_ = false;
    const std::size_t size = layout_.row_bytes();
    const auto rows = std::exchange(waiting_, {});
    n_rows_ = 0;
    for (std::size_t at = 0; at < rows.size(); at += size) add(std::span(rows).subspan(at, size));
    return;
  }
  deflate_.add(row);
  ++n_rows_;
  if (n_rows_ % rows_per_chunk_ != 0) return;
  chunks_.push_back(deflate_.finish());
  last_.assign(row.begin(), row.end());
}

EncodedArray ArrayEncoder::finish() {
  if (n_rows_ == 0) throw std::logic_error("array '" + layout_.path + "' has no rows");
  EncodedArray array{.layout = layout_, .n_rows = n_rows_, .rows_per_chunk = rows_per_chunk_};
  if (const std::int64_t n_over = n_rows_ % rows_per_chunk_; n_over != 0) {
    if (chunks_.empty()) {
      array.rows_per_chunk = n_rows_;
    } else if (!waits_) {
      for (std::int64_t i = n_over; i < rows_per_chunk_; ++i) deflate_.add(last_);
    }
    chunks_.push_back(waits_ ? encode_waiting() : deflate_.finish());
  }
  array.chunks = std::exchange(chunks_, {});
  n_rows_ = 0;
  return array;
}

std::string ArrayEncoder::encode_waiting() {
  if (waiting_ != known_) {
    const std::size_t size = layout_.row_bytes();
    for (std::size_t at = 0; at < waiting_.size(); at += size) {
      deflate_.add(std::span(waiting_).subspan(at, size));
    }
    known_stream_ = deflate_.finish();
    known_.swap(waiting_);
  }
  waiting_.clear();
  return known_stream_;
}

void ArrayEncoder::clear() {
  static_cast<void>(deflate_.finish());
  waiting_.clear();
  chunks_.clear();
  n_rows_ = 0;
}

EpisodeEncoder::EpisodeEncoder(EpisodeLayout layout)
    : links_(std::move(layout.links)),
      rewards_({"rewards", ElementType::float64, {}}),
      terminations_({"terminations", ElementType::boolean, {}}),
      truncations_({"truncations", ElementType::boolean, {}}) {
  for (ArrayLayout& array : layout.observations) observations_.emplace_back(std::move(array));
  for (ArrayLayout& array : layout.actions) actions_.emplace_back(std::move(array));
}

void EpisodeEncoder::begin(Rows observation) {
  if (running_) {
    for (ArrayEncoder& array : observations_) array.clear();
    for (ArrayEncoder& array : actions_) array.clear();
    for (ArrayEncoder* array : {&rewards_, &terminations_, &truncations_}) array->clear();
  }
  running_ = true;
  for (std::size_t i = 0; i < observations_.size(); ++i) observations_[i].add(observation[i]);
}

void EpisodeEncoder::step(Rows action, const Outcome& outcome, Rows observation) {
  for (std::size_t i = 0; i < actions_.size(); ++i) actions_[i].add(action[i]);
  rewards_.add(std::as_bytes(std::span(&outcome.reward, 1)));
  terminations_.add(std::as_bytes(std::span(&outcome.terminated, 1)));
  truncations_.add(std::as_bytes(std::span(&outcome.truncated, 1)));
  for (std::size_t i = 0; i < observations_.size(); ++i) observations_[i].add(observation[i]);
}

Episode EpisodeEncoder::finish() {
  Episode episode{.n_steps = n_steps()};
  for (ArrayEncoder& array : observations_) episode.arrays.push_back(array.finish());
  for (ArrayEncoder& array : actions_) episode.arrays.push_back(array.finish());
  for (ArrayEncoder* array : {&rewards_, &terminations_, &truncations_}) {
    episode.arrays.push_back(array->finish());
  }
  episode.links = links_;
  running_ = false;
  return episode;
}

EncodedArray encode(const ArrayLayout& layout, std::span<const std::byte> rows) {
  ArrayEncoder encoder(layout);
  const std::size_t row = layout.row_bytes();
  for (std::size_t at = 0; at < rows.size(); at += row) encoder.add(rows.subspan(at, row));
  return encoder.finish();
}

}  // namespace doppler
