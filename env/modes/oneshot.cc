// One step gives the whole assignment; numbers of padding nodes are ignored.
#include <algorithm>

#include "env/modes/modes.h"

namespace doppler::modes {
namespace {

class Oneshot final : public ActionMode {
 public:
  ActionSpec action_spec(const EnvModel& model) const override {
    return {.sizes = std::vector<std::int64_t>(model.max_nodes(),
                                               static_cast<std::int64_t>(model.max_devices())),
            .discrete = false};
  }
  std::int64_t n_steps(std::int64_t) const override { return 1; }

  void begin(EpisodeState& state) const override { state.node = NodeId{-1}; }

  bool is_legal(const EpisodeState& state, std::span<const std::int64_t> action) const override {
    const auto nodes = action.first(state.placement().n_nodes());
    return std::all_of(nodes.begin(), nodes.end(),
                       [&](std::int64_t device) { return is_device(state, device); });
  }

  ActionEffect apply(EpisodeState& state, std::span<const std::int64_t> action) const override {
    for (NodeId node : state.placement().b_level_order()) {
      state.schedule().place(node, DeviceId(action[node.index()]));
    }
    return ActionEffect::placed;
  }

  void write_mask(const EpisodeState& state, std::span<std::int8_t> mask) const override {
    const std::size_t width = state.model->max_devices();
    for (std::size_t v = 0; v < state.model->max_nodes(); ++v) {
      const bool is_node = v < state.placement().n_nodes();
      const std::size_t n_legal = is_node ? state.placement().n_devices() : width;
      const auto row = mask.begin() + static_cast<std::ptrdiff_t>(v * width);
      std::fill_n(row, n_legal, std::int8_t{1});
      std::fill(row + static_cast<std::ptrdiff_t>(n_legal),
                row + static_cast<std::ptrdiff_t>(width), std::int8_t{0});
    }
  }

  std::string describe_legal(const EpisodeState& state) const override {
    return describe_devices(state) + " for each of " + std::to_string(state.placement().n_nodes()) +
           " nodes";
  }
};

}  // namespace

std::unique_ptr<ActionMode> make_oneshot(const EnvOptions&) { return std::make_unique<Oneshot>(); }

}  // namespace doppler::modes
