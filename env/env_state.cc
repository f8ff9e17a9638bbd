// Serialized states of an environment, and their equality.
//
// Layout, little endian as in memory: "DGES", version (u32), hash of the model (u64), the fields
// below in order, lists behind their length (u64), at the end a hash of everything before it. The
// schedule and the arrays are not in it: restoring takes the episode's decisions again.
#include <cstring>

#include "env/env.h"
#include "graphs/hash.h"

namespace doppler {
namespace {

constexpr std::string_view kMagic = "DGES";
constexpr std::uint32_t kVersion = 1;

class Writer {
 public:
  template <class T>
  void add(T value) {
    static_assert(std::is_trivially_copyable_v<T>);
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof(T));
  }
  template <class T>
  void add_list(const std::vector<T>& values) {
    add(static_cast<std::uint64_t>(values.size()));
    for (const T& value : values) add(value);
  }
  void add_text(std::string_view text) {
    add(static_cast<std::uint64_t>(text.size()));
    bytes_.append(text);
  }
  std::string take() { return std::move(bytes_); }
  [[nodiscard]] std::string_view bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}
  template <class T>
  T take() {
    T value;
    need(sizeof(T));
    std::memcpy(&value, bytes_.data(), sizeof(T));
    bytes_.remove_prefix(sizeof(T));
    return value;
  }
  template <class T>
  std::vector<T> take_list() {
    const auto n = take<std::uint64_t>();
    if (n > bytes_.size() / sizeof(T)) need(bytes_.size() + 1);
    std::vector<T> values;
    for (std::uint64_t i = 0; i < n; ++i) values.push_back(take<T>());
    return values;
  }
  std::string take_text() {
    const auto n = take<std::uint64_t>();
    need(n);
    std::string text(bytes_.substr(0, n));
    bytes_.remove_prefix(n);
    return text;
  }
  [[nodiscard]] bool empty() const { return bytes_.empty(); }

 private:
  void need(std::uint64_t n) const {
    if (n > bytes_.size()) throw InvalidError("the serialized state is damaged: it ends too early");
  }
  std::string_view bytes_;
};

std::uint64_t checksum(std::string_view bytes) { return Hasher().add(bytes).digest(); }

}  // namespace

std::string Env::serialize() const {
  Writer writer;
  for (char c : kMagic) writer.add(c);
  writer.add(kVersion);
  writer.add(model_->hash());
  writer.add(static_cast<std::uint64_t>(state_.task));
  writer.add(luck_seed_);
  writer.add(n_draws_);
  writer.add(engine_seed_);
  writer.add(initial_seed_);
  writer.add(static_cast<std::int8_t>(running_));
  writer.add(static_cast<std::int8_t>(terminated_));
  writer.add(n_illegal_);
  writer.add_list(history_);
  writer.add(static_cast<std::uint64_t>(measured_.size()));
  for (const Measurement& measurement : measured_) {
    writer.add(measurement.makespan);
    writer.add_text(measurement.failure);
  }
  writer.add(checksum(writer.bytes()));
  return writer.take();
}

void Env::restore(std::string_view bytes) {
  if (bytes.substr(0, kMagic.size()) != kMagic) {
    throw InvalidError("these bytes are no serialized state of an environment");
  }
  Reader reader(bytes.substr(kMagic.size()));
  const auto version = reader.take<std::uint32_t>();
  if (version != kVersion) {
    throw InvalidError("the serialized state is of version " + std::to_string(version) +
                       "; this library reads version " + std::to_string(kVersion));
  }
  const std::size_t n_sum = sizeof(std::uint64_t);
  std::uint64_t sum = 0;
  if (bytes.size() >= n_sum) std::memcpy(&sum, bytes.data() + bytes.size() - n_sum, n_sum);
  if (bytes.size() < n_sum || sum != checksum(bytes.substr(0, bytes.size() - n_sum))) {
    throw InvalidError("the serialized state is damaged: its checksum does not match");
  }
  if (reader.take<std::uint64_t>() != model_->hash()) {
    throw InvalidError(
        "the serialized state is of another environment: its tasks or options differ; make the "
        "environment with the same ones");
  }
  Env next(model_);
  const auto task = static_cast<std::size_t>(reader.take<std::uint64_t>());
  next.luck_seed_ = reader.take<std::uint64_t>();
  next.n_draws_ = reader.take<std::uint64_t>();
  next.engine_seed_ = reader.take<std::uint64_t>();
  next.initial_seed_ = reader.take<std::uint64_t>();
  const bool running = reader.take<std::int8_t>() != 0;
  const bool terminated = reader.take<std::int8_t>() != 0;
  const auto n_illegal = reader.take<std::int64_t>();
  const auto history = reader.take_list<std::int64_t>();
  const auto n_measured = reader.take<std::uint64_t>();
  for (std::uint64_t i = 0; i < n_measured; ++i) {
    const auto makespan = reader.take<double>();
    next.measured_.push_back({makespan, reader.take_text()});
  }
  reader.take<std::uint64_t>();  // the checksum
  const std::size_t width = model_->spec().action.sizes.size();
  if (!reader.empty() || task >= model_->tasks().size() || history.size() % width != 0) {
    throw InvalidError("the serialized state is damaged: its numbers do not fit together");
  }
  if (next.n_draws_ > 0) {
    next.begin_episode(task);
    for (std::size_t i = 0; i < history.size(); i += width) {
      const auto action = std::span(history).subspan(i, width);
      if (!next.is_legal(action)) {
        throw InvalidError("the serialized state is damaged: one of its decisions is not legal");
      }
      next.step(action);
    }
    next.n_illegal_ = n_illegal;
    const bool truncated =
        n_illegal >= static_cast<std::int64_t>(next.state_.placement().n_nodes());
    if (n_illegal < 0 || (next.running_ && truncated == running)) {
      throw InvalidError("the serialized state is damaged: its illegal actions end it elsewhere");
    }
    if (truncated && next.running_) {
      next.running_ = false;
      next.write_mask();
    }
  }
  if (next.running_ != running || next.terminated_ != terminated) {
    throw InvalidError("the serialized state is damaged: its decisions end elsewhere");
  }
  *this = std::move(next);
}

bool operator==(const Env& a, const Env& b) {
  return a.model_->hash() == b.model_->hash() && a.state_.task == b.state_.task &&
         a.state_.node == b.state_.node && a.state_.selecting == b.state_.selecting &&
         a.state_.assignment == b.state_.assignment && a.arrays_ == b.arrays_ &&
         a.running_ == b.running_ && a.terminated_ == b.terminated_ &&
         a.luck_seed_ == b.luck_seed_ && a.n_draws_ == b.n_draws_ &&
         a.engine_seed_ == b.engine_seed_ && a.initial_seed_ == b.initial_seed_ &&
         a.return_ == b.return_ && a.last_time_ == b.last_time_ && a.n_illegal_ == b.n_illegal_ &&
         a.history_ == b.history_ && a.measured_ == b.measured_ && a.result_ == b.result_;
}

}  // namespace doppler
