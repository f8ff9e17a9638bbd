#include "agents/learned/placeto_rollout.h"

#include <algorithm>
#include <utility>

namespace doppler {

namespace {

constexpr std::size_t kVisited = 2;  // columns of the features
constexpr std::size_t kPlaced = 3;

void relu(std::vector<float>& row) {
  for (float& x : row) x = std::max(x, 0.0F);
}

float* row_of(std::vector<float>& table, std::int32_t row, std::size_t width) {
  return table.data() + static_cast<std::size_t>(row) * width;
}

// out = second . relu(first . in)
void apply(const TwoLayers<PlainLayer>& layers, const float* in, std::vector<float>& between,
           float* out) {
  between.resize(layers.first.width);
  layers.first.apply(in, 1, between.data());
  relu(between);
  layers.second.apply(between.data(), 1, out);
}

}  // namespace

PlacetoRollout::PlacetoRollout(std::shared_ptr<const PlacetoTask> task)
    : task_(std::move(task)),
      n_columns_(kPlacetoOwnFeatures + task_->model->n_devices()),
      marks_(task_->n_nodes(), 0) {}

void PlacetoRollout::begin(const PlacetoWeights& weights, const Assignment* start) {
  weights_ = &weights;
  const std::size_t n = task_->n_nodes();
  const auto width = static_cast<std::size_t>(weights.sizes.width);
  const auto rounds = static_cast<std::size_t>(weights.sizes.rounds);
  features_.assign(n * n_columns_, 0);
  own_.assign(n * width, 0);
  embedding_.assign(n * 2 * width, 0);
  for (auto& sent : sent_) sent.assign(n * 2 * width, 0);
  for (Direction& direction : directions_) {
    direction.states.assign(rounds + 1, std::vector<float>(n * width, 0));
    direction.sent.assign(rounds, std::vector<float>(n * width, 0));
  }
  changed_.clear();
  for (std::size_t v = 0; v < n; ++v) {
    float* const row = features_.data() + v * n_columns_;
    row[0] = task_->costs[2 * v];
    row[1] = task_->costs[2 * v + 1];
    if (start != nullptr) row[kPlacetoOwnFeatures + (*start)[task_->order[v]].index()] = 1;
    changed_.push_back(static_cast<std::int32_t>(v));
  }
  embed_own(changed_);
  for (std::size_t direction = 0; direction < 2; ++direction) {
    // Everything is new, whether or not it differs from the zeros above.
    Direction& all = directions_[direction];
    all.states[0] = own_;
    for (std::size_t k = 0; k < rounds; ++k) {
      for (std::size_t v = 0; v < n; ++v) {
        const auto node = static_cast<std::int32_t>(v);
        one_.resize(width);
        apply(weights.directions[direction].message, row_of(all.states[k], node, width), two_,
              one_.data());
        relu(one_);
        std::copy_n(one_.begin(), width, row_of(all.sent[k], node, width));
      }
      for (std::size_t v = 0; v < n; ++v) {
        const auto node = static_cast<std::int32_t>(v);
        float* const to = row_of(all.states[k + 1], node, width);
        listen(direction, k, node, to);
      }
    }
  }
  prepare_groups(changed_);
  changed_.clear();
}

// x_k+1 of a node.
void PlacetoRollout::listen(std::size_t direction, std::size_t round, std::int32_t node,
                            float* out) {
  const auto width = static_cast<std::size_t>(weights_->sizes.width);
  const EdgeLists& edges = direction == 0 ? task_->down : task_->up;
  const auto v = static_cast<std::size_t>(node);
  std::copy_n(row_of(own_, node, width), width, out);
  if (edges.first[v] == edges.first[v + 1]) return;
  seen_.assign(width, 0);
  for (std::int32_t e = edges.first[v]; e < edges.first[v + 1]; ++e) {
    const float* const sent =
        row_of(directions_[direction].sent[round], edges.from[static_cast<std::size_t>(e)], width);
    for (std::size_t j = 0; j < width; ++j) seen_[j] += sent[j];
  }
  one_.resize(width);
  apply(weights_->directions[direction].update, seen_.data(), two_, one_.data());
  for (std::size_t j = 0; j < width; ++j) out[j] += std::max(one_[j], 0.0F);
}

void PlacetoRollout::touch(std::size_t v) {
  const auto node = static_cast<std::int32_t>(v);
  if (std::find(changed_.begin(), changed_.end(), node) == changed_.end()) changed_.push_back(node);
}

void PlacetoRollout::visit(std::size_t v) {
  features_[v * n_columns_ + kVisited] = 1;
  touch(v);
}

void PlacetoRollout::placed(std::size_t v, DeviceId device) {
  float* const row = features_.data() + v * n_columns_;
  row[kVisited] = 0;
  row[kPlaced] = 1;
  std::fill_n(row + kPlacetoOwnFeatures, n_columns_ - kPlacetoOwnFeatures, 0.0F);
  row[kPlacetoOwnFeatures + device.index()] = 1;
  touch(v);
}

void PlacetoRollout::embed_own(const Nodes& changed) {
  const auto width = static_cast<std::size_t>(weights_->sizes.width);
  for (std::int32_t v : changed) {
    apply(weights_->own, row_of(features_, v, n_columns_), two_, row_of(own_, v, width));
  }
}

void PlacetoRollout::add(std::int32_t node, Nodes& nodes) {
  std::uint64_t& mark = marks_[static_cast<std::size_t>(node)];
  if (mark == walk_) return;
  mark = walk_;
  nodes.push_back(node);
}

// From nodes whose s has changed; appends those whose last state has.
void PlacetoRollout::pass(std::size_t direction, const Nodes& changed, Nodes& moved) {
  const auto width = static_cast<std::size_t>(weights_->sizes.width);
  const auto rounds = static_cast<std::size_t>(weights_->sizes.rounds);
  Direction& all = directions_[direction];
  const EdgeLists& readers = direction == 0 ? task_->up : task_->down;
  for (std::int32_t v : changed) {
    std::copy_n(row_of(own_, v, width), width, row_of(all.states[0], v, width));
  }
  present_ = changed;
  std::vector<float> state(width);
  for (std::size_t k = 0; k < rounds; ++k) {
    ++walk_;
    next_.clear();
    for (std::int32_t v : changed) add(v, next_);
    for (std::int32_t u : present_) {
      one_.resize(width);
      apply(weights_->directions[direction].message, row_of(all.states[k], u, width), two_,
            one_.data());
      relu(one_);
      float* const sent = row_of(all.sent[k], u, width);
      if (std::equal(one_.begin(), one_.begin() + static_cast<std::ptrdiff_t>(width), sent)) {
        continue;
      }
      std::copy_n(one_.begin(), width, sent);
      const auto at = static_cast<std::size_t>(u);
      for (std::int32_t e = readers.first[at]; e < readers.first[at + 1]; ++e) {
        add(readers.from[static_cast<std::size_t>(e)], next_);
      }
    }
    present_.clear();
    for (std::int32_t v : next_) {
      listen(direction, k, v, state.data());
      float* const to = row_of(all.states[k + 1], v, width);
      if (std::equal(state.begin(), state.end(), to)) continue;
      std::copy(state.begin(), state.end(), to);
      present_.push_back(v);
    }
  }
  moved.insert(moved.end(), present_.begin(), present_.end());
}

void PlacetoRollout::prepare_groups(const Nodes& moved) {
  const auto width = static_cast<std::size_t>(weights_->sizes.width);
  for (std::int32_t v : moved) {
    float* const both = row_of(embedding_, v, 2 * width);
    std::copy_n(row_of(directions_[0].states.back(), v, width), width, both);
    std::copy_n(row_of(directions_[1].states.back(), v, width), width, both + width);
    for (std::size_t g = 0; g < sent_.size(); ++g) {
      float* const sent = row_of(sent_[g], v, 2 * width);
      weights_->groups[g].before.apply(both, 1, sent);
      for (std::size_t j = 0; j < 2 * width; ++j) sent[j] = std::max(sent[j], 0.0F);
    }
  }
}

void PlacetoRollout::update() {
  embed_own(changed_);
  moved_.clear();
  pass(0, changed_, moved_);
  pass(1, changed_, moved_);
  std::sort(moved_.begin(), moved_.end());
  moved_.erase(std::unique(moved_.begin(), moved_.end()), moved_.end());
  prepare_groups(moved_);
  changed_.clear();
}

std::span<const float> PlacetoRollout::score(std::size_t v) {
  const auto width = 2 * static_cast<std::size_t>(weights_->sizes.width);
  const std::size_t n = task_->n_nodes();
  seen_.assign(4 * width, 0);
  std::array<float, 3> size = {0, 0, 0};
  one_.assign(3 * width, 0);
  for (std::size_t u = 0; u < n; ++u) {
    if (u == v) continue;
    const std::size_t g = task_->reaches(u, v) ? 0 : (task_->reaches(v, u) ? 1 : 2);
    const float* const sent = sent_[g].data() + u * width;
    float* const sum = one_.data() + g * width;
    for (std::size_t j = 0; j < width; ++j) sum[j] += sent[j];
    ++size[g];
  }
  for (std::size_t g = 0; g < sent_.size(); ++g) {
    float* const mean = one_.data() + g * width;
    if (size[g] > 0) {
      for (std::size_t j = 0; j < width; ++j) mean[j] /= size[g];
    }
    float* const seen = seen_.data() + g * width;
    weights_->groups[g].after.apply(mean, 1, seen);
    for (std::size_t j = 0; j < width; ++j) seen[j] = std::max(seen[j], 0.0F);
  }
  std::copy_n(embedding_.begin() + static_cast<std::ptrdiff_t>(v * width), width,
              seen_.begin() + static_cast<std::ptrdiff_t>(3 * width));
  two_.resize(weights_->head.width);
  weights_->head.apply(seen_.data(), 1, two_.data());
  relu(two_);
  scores_.resize(weights_->out.width);
  weights_->out.apply(two_.data(), 1, scores_.data());
  log_softmax(scores_.data(), weights_->out.n_outputs);
  return std::span(scores_).first(weights_->out.n_outputs);
}

}  // namespace doppler
