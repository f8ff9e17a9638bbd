#include "agents/learned/node_classes.h"

#include <algorithm>
#include <bit>
#include <map>
#include <numeric>
#include <unordered_map>
#include <utility>

#include "graphs/hash.h"

namespace doppler {

namespace {

struct KeyHash {
  std::size_t operator()(const std::vector<std::int64_t>& key) const noexcept {
    Hasher hasher;
    for (std::int64_t x : key) hasher.add(static_cast<std::uint64_t>(x));
    return static_cast<std::size_t>(hasher.digest());
  }
};

// Numbers keys by first appearance.
class Numbering {
 public:
  std::int32_t number(const std::vector<std::int64_t>& key) {
    return numbers_.try_emplace(key, static_cast<std::int32_t>(numbers_.size())).first->second;
  }
  [[nodiscard]] std::size_t size() const { return numbers_.size(); }

 private:
  std::unordered_map<std::vector<std::int64_t>, std::int32_t, KeyHash> numbers_;
};

// The bidirected edges into each node.
struct Incoming {
  explicit Incoming(const GraphFeatures& features)
      : first(features.n_nodes + 1, 0), edges(features.target.size()) {
    for (std::int32_t target : features.target) ++first[static_cast<std::size_t>(target) + 1];
    std::partial_sum(first.begin(), first.end(), first.begin());
    std::vector<std::int32_t> at(first.begin(), first.end() - 1);
    for (std::size_t e = 0; e < features.target.size(); ++e) {
      const auto target = static_cast<std::size_t>(features.target[e]);
      edges[static_cast<std::size_t>(at[target]++)] = static_cast<std::int32_t>(e);
    }
  }
  [[nodiscard]] std::span<const std::int32_t> of(std::size_t node) const {
    return std::span(edges).subspan(static_cast<std::size_t>(first[node]),
                                    static_cast<std::size_t>(first[node + 1] - first[node]));
  }
  std::vector<std::int32_t> first;
  std::vector<std::int32_t> edges;
};

std::vector<std::int32_t> feature_classes(const GraphFeatures& features, std::size_t& n_classes) {
  Numbering numbering;
  std::vector<std::int32_t> classes(features.n_nodes);
  std::vector<std::int64_t> key(features.n_columns);
  for (std::size_t v = 0; v < features.n_nodes; ++v) {
    for (std::size_t c = 0; c < features.n_columns; ++c) {
      key[c] = std::bit_cast<std::int32_t>(features.nodes[v * features.n_columns + c] + 0.0F);
    }
    classes[v] = numbering.number(key);
  }
  n_classes = numbering.size();
  return classes;
}

std::vector<std::int32_t> refine(const GraphFeatures& features, const Incoming& incoming, int steps,
                                 std::size_t& n_classes) {
  std::vector<std::int32_t> classes = feature_classes(features, n_classes);
  std::vector<std::int32_t> refined(features.n_nodes);
  std::vector<std::int64_t> key;
  for (int step = 0; step < steps; ++step) {
    Numbering numbering;
    for (std::size_t v = 0; v < features.n_nodes; ++v) {
      key.clear();
      for (std::int32_t edge : incoming.of(v)) {
        const auto e = static_cast<std::size_t>(edge);
        const std::int64_t from = classes[static_cast<std::size_t>(features.source[e])];
        key.push_back((from << 32) + features.value[e]);
      }
      std::sort(key.begin(), key.end());
      key.push_back(classes[v]);
      refined[v] = numbering.number(key);
    }
    std::swap(classes, refined);
    if (numbering.size() == n_classes) break;  // stable: further rounds split nothing
    n_classes = numbering.size();
  }
  return classes;
}

void find_members(MessagePlan& plan) {
  plan.representative.assign(plan.n_classes, -1);
  plan.class_size.assign(plan.n_classes, 0);
  for (std::size_t v = 0; v < plan.node_class.size(); ++v) {
    const auto c = static_cast<std::size_t>(plan.node_class[v]);
    if (plan.representative[c] < 0) plan.representative[c] = static_cast<std::int32_t>(v);
    ++plan.class_size[c];
  }
}

void find_messages(const GraphFeatures& features, const Incoming& incoming, MessagePlan& plan) {
  using Message = std::pair<std::int32_t, std::int32_t>;  // value, source class
  // What each class receives, by message.
  std::vector<std::map<Message, std::int32_t>> received(plan.n_classes);
  std::vector<Message> messages;
  for (std::size_t c = 0; c < plan.n_classes; ++c) {
    for (std::int32_t edge : incoming.of(static_cast<std::size_t>(plan.representative[c]))) {
      const auto e = static_cast<std::size_t>(edge);
      const Message message{features.value[e],
                            plan.node_class[static_cast<std::size_t>(features.source[e])]};
      if (++received[c][message] == 1) messages.push_back(message);
    }
  }
  std::sort(messages.begin(), messages.end());
  messages.erase(std::unique(messages.begin(), messages.end()), messages.end());
  plan.value_first.assign(features.values.size() + 1, 0);
  for (const auto& [value, source] : messages) {
    plan.message_source.push_back(source);
    plan.message_value.push_back(value);
    ++plan.value_first[static_cast<std::size_t>(value) + 1];
  }
  std::partial_sum(plan.value_first.begin(), plan.value_first.end(), plan.value_first.begin());

  plan.use_first.assign(messages.size() + 1, 0);
  plan.term_first.push_back(0);
  for (const auto& terms : received) {
    for (const auto& [message, count] : terms) {
      const auto at = std::lower_bound(messages.begin(), messages.end(), message);
      plan.term_message.push_back(static_cast<std::int32_t>(at - messages.begin()));
      plan.term_count.push_back(static_cast<float>(count));
      ++plan.use_first[static_cast<std::size_t>(at - messages.begin()) + 1];
    }
    plan.term_first.push_back(static_cast<std::int32_t>(plan.term_message.size()));
  }
  std::partial_sum(plan.use_first.begin(), plan.use_first.end(), plan.use_first.begin());
  plan.use_class.resize(plan.term_message.size());
  plan.use_count.resize(plan.term_message.size());
  std::vector<std::int32_t> next(plan.use_first.begin(), plan.use_first.end() - 1);
  for (std::size_t c = 0; c < plan.n_classes; ++c) {
    for (auto t = plan.term_first[c]; t < plan.term_first[c + 1]; ++t) {
      const auto term = static_cast<std::size_t>(t);
      const auto message = static_cast<std::size_t>(plan.term_message[term]);
      const auto use = static_cast<std::size_t>(next[message]++);
      plan.use_class[use] = static_cast<std::int32_t>(c);
      plan.use_count[use] = plan.term_count[term];
    }
  }
}

}  // namespace

MessagePlan message_plan(const GraphFeatures& features, int steps, bool merge) {
  MessagePlan plan;
  const Incoming incoming(features);
  if (merge) {
    plan.node_class = refine(features, incoming, steps, plan.n_classes);
  } else {
    plan.n_classes = features.n_nodes;
    plan.node_class.resize(features.n_nodes);
    std::iota(plan.node_class.begin(), plan.node_class.end(), 0);
  }
  find_members(plan);
  find_messages(features, incoming, plan);
  return plan;
}

std::vector<std::int32_t> path_classes(std::span<const std::int32_t> class_of,
                                       std::span<const std::int32_t> next,
                                       std::span<const NodeId> topological_order,
                                       bool next_is_successor) {
  std::vector<std::int32_t> classes(class_of.size());
  std::unordered_map<std::uint64_t, std::int32_t> numbers;
  const auto visit = [&](std::size_t v) {
    // -1 becomes 0: no class beyond the end.
    const std::uint64_t beyond =
        next[v] < 0 ? 0
                    : static_cast<std::uint64_t>(classes[static_cast<std::size_t>(next[v])]) + 1;
    const std::uint64_t key = (beyond << 32) + static_cast<std::uint64_t>(class_of[v]);
    classes[v] = numbers.try_emplace(key, static_cast<std::int32_t>(numbers.size())).first->second;
  };
  if (next_is_successor) {
    for (auto at = topological_order.rbegin(); at != topological_order.rend(); ++at) {
      visit(at->index());
    }
  } else {
    for (NodeId node : topological_order) visit(node.index());
  }
  return classes;
}

}  // namespace doppler
