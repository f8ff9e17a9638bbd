#include "agents/search/shard_groups.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string_view>
#include <tuple>

namespace doppler {

std::vector<std::vector<NodeId>> shard_groups(const Graph& graph) {
  using Key = std::tuple<std::int32_t, std::int32_t, std::string_view>;  // meta-op, level, kind
  std::map<Key, std::size_t> group_of;
  std::vector<std::vector<NodeId>> groups;
  for (NodeId node : graph.topological_order()) {
    const std::int32_t meta_op = graph.meta_op(node);
    const Key key =
        meta_op >= 0 ? Key(meta_op, 0, {}) : Key(-1, graph.level(node), graph.kind(node));
    const auto [found, is_new] = group_of.emplace(key, groups.size());
    if (is_new) groups.emplace_back();
    groups[found->second].push_back(node);
  }
  for (auto& group : groups) std::sort(group.begin(), group.end());
  return groups;
}

}  // namespace doppler
