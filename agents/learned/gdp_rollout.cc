#include "agents/learned/gdp_rollout.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace doppler {

namespace {

void normalise(float* row, std::size_t n, const std::vector<float>& weight,
               const std::vector<float>& bias) {
  double mean = 0;
  for (std::size_t j = 0; j < n; ++j) mean += row[j];
  mean /= static_cast<double>(n);
  double squares = 0;
  for (std::size_t j = 0; j < n; ++j) squares += (row[j] - mean) * (row[j] - mean);
  const double scale = 1 / std::sqrt(squares / static_cast<double>(n) + kGdpNormFloor);
  for (std::size_t j = 0; j < n; ++j) {
    row[j] = static_cast<float>((row[j] - mean) * scale) * weight[j] + bias[j];
  }
}

}  // namespace

GdpRollout::GdpRollout(std::shared_ptr<const GdpTask> task, MessagePassingTime time)
    : task_(std::move(task)),
      time_(time),
      n_columns_(task_->n_features + static_cast<std::size_t>(gdp_placement_features(
                                         time, task_->model->n_devices()))) {}

void GdpRollout::begin(const GdpWeights& weights) {
  weights_ = &weights;
  const std::size_t n_nodes = task_->order.size();
  const auto hidden = static_cast<std::size_t>(weights.sizes.hidden);
  features_.assign(n_nodes * n_columns_, 0);
  for (std::size_t v = 0; v < n_nodes; ++v) {
    std::copy_n(task_->features.begin() + static_cast<std::ptrdiff_t>(v * task_->n_features),
                task_->n_features, features_.begin() + static_cast<std::ptrdiff_t>(v * n_columns_));
  }
  states_.resize(n_nodes * hidden);
  sent_.resize(n_nodes * hidden);
  outputs_.resize(n_nodes * hidden);
  project(0, n_nodes);
  begin_ = 0;
  n_done_ = 0;
}

void GdpRollout::project(std::size_t first, std::size_t n) {
  const auto hidden = static_cast<std::size_t>(weights_->sizes.hidden);
  float* const states = states_.data() + first * hidden;
  float* const sent = sent_.data() + first * hidden;
  weights_->project.apply(features_.data() + first * n_columns_, n, states);
  weights_->neighbour.apply(states, n, sent);
  for (std::size_t i = 0; i < n * hidden; ++i) sent[i] = 1 / (1 + std::exp(-sent[i]));
}

void GdpRollout::placed(std::size_t place, DeviceId device) {
  if (time_ == MessagePassingTime::episode) return;
  features_[place * n_columns_ + task_->n_features + device.index()] = 1;
  project(place, 1);
}

// x of the present segment.
void GdpRollout::write_nodes(std::size_t n) {
  const auto hidden = static_cast<std::size_t>(weights_->sizes.hidden);
  pairs_.assign(n * 2 * hidden, 0);
  nodes_.resize(n * hidden);
  for (std::size_t i = 0; i < n; ++i) {
    const std::size_t v = begin_ + i;
    float* const row = pairs_.data() + i * 2 * hidden;
    std::copy_n(states_.begin() + static_cast<std::ptrdiff_t>(v * hidden), hidden, row);
    float* const received = row + hidden;
    for (std::int32_t at = task_->first[v]; at < task_->first[v + 1]; ++at) {
      const auto from = static_cast<std::size_t>(task_->neighbour[static_cast<std::size_t>(at)]);
      const float* const sent = sent_.data() + from * hidden;
      // A sigmoid is never negative, so that zeros stand for nothing received yet.
      for (std::size_t j = 0; j < hidden; ++j) received[j] = std::max(received[j], sent[j]);
    }
  }
  weights_->combine.apply(pairs_.data(), n, nodes_.data());
}

// y of the present segment.
void GdpRollout::attend(std::size_t n) {
  const auto hidden = static_cast<std::size_t>(weights_->sizes.hidden);
  const auto heads = static_cast<std::size_t>(weights_->sizes.heads);
  const auto segment = static_cast<std::size_t>(weights_->sizes.segment);
  const std::size_t width = hidden / heads;
  const std::size_t n_memory = begin_ == 0 ? 0 : segment;
  const std::size_t n_read = n_memory + n;
  read_.resize(n_read * hidden);
  std::copy_n(outputs_.begin() + static_cast<std::ptrdiff_t>((begin_ - n_memory) * hidden),
              n_memory * hidden, read_.begin());
  std::copy_n(nodes_.begin(), n * hidden,
              read_.begin() + static_cast<std::ptrdiff_t>(n_memory * hidden));
  query_.resize(n * hidden);
  key_.resize(n_read * hidden);
  value_.resize(n_read * hidden);
  weights_->query.apply(nodes_.data(), n, query_.data());
  weights_->key.apply(read_.data(), n_read, key_.data());
  weights_->value.apply(read_.data(), n_read, value_.data());

  attended_.assign(n * hidden, 0);
  std::vector<float>& share = mixed_;
  share.resize(n_read);
  const float scale = 1 / std::sqrt(static_cast<float>(width));
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t head = 0; head < heads; ++head) {
      const float* const query = query_.data() + i * hidden + head * width;
      for (std::size_t k = 0; k < n_read; ++k) {
        const float* const key = key_.data() + k * hidden + head * width;
        float sum = 0;
        for (std::size_t j = 0; j < width; ++j) sum += query[j] * key[j];
        share[k] = sum * scale;
      }
      log_softmax(share.data(), n_read);
      float* const to = attended_.data() + i * hidden + head * width;
      for (std::size_t k = 0; k < n_read; ++k) {
        const float weight = std::exp(share[k]);
        const float* const value = value_.data() + k * hidden + head * width;
        for (std::size_t j = 0; j < width; ++j) to[j] += weight * value[j];
      }
    }
  }

  std::vector<float>& z = query_;
  weights_->attended.apply(attended_.data(), n, z.data());
  for (std::size_t i = 0; i < n * hidden; ++i) z[i] += nodes_[i];
  for (std::size_t i = 0; i < n; ++i) {
    normalise(z.data() + i * hidden, hidden, weights_->norm_weight, weights_->norm_bias);
  }
  wide_.resize(n * weights_->wide.width);
  weights_->wide.apply(z.data(), n, wide_.data());
  for (float& x : wide_) x = std::max(x, 0.0F);
  float* const y = outputs_.data() + begin_ * hidden;
  weights_->narrow.apply(wide_.data(), n, y);
  for (std::size_t i = 0; i < n * hidden; ++i) y[i] += z[i];
  for (std::size_t i = 0; i < n; ++i) {
    normalise(y + i * hidden, hidden, weights_->last_weight, weights_->last_bias);
  }
}

std::span<const float> GdpRollout::next_segment() {
  begin_ = n_done_;
  const std::size_t n =
      std::min(task_->order.size() - begin_, static_cast<std::size_t>(weights_->sizes.segment));
  if (n == 0) return {};
  write_nodes(n);
  attend(n);
  const std::size_t n_devices = weights_->out.n_outputs;
  const std::size_t width = weights_->out.width;
  scores_.resize(n * width);
  weights_->out.apply(outputs_.data() + begin_ * static_cast<std::size_t>(weights_->sizes.hidden),
                      n, scores_.data());
  for (std::size_t i = 0; i < n; ++i) {
    // Rows without what fills them up; a row is never before its place.
    std::copy_n(scores_.begin() + static_cast<std::ptrdiff_t>(i * width), n_devices,
                scores_.begin() + static_cast<std::ptrdiff_t>(i * n_devices));
    log_softmax(scores_.data() + i * n_devices, n_devices);
  }
  n_done_ = begin_ + n;
  return std::span(scores_).first(n * n_devices);
}

}  // namespace doppler
