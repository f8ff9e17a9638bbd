// One step selects a node among the candidates, the next places it: two policies, SEL and PLC.
#include <algorithm>

#include "env/modes/modes.h"

namespace doppler::modes {
namespace {

class Sequential final : public ActionMode {
 public:
  ActionSpec action_spec(const EnvModel& model) const override {
    return {.sizes = {static_cast<std::int64_t>(model.max_nodes() + model.max_devices())}};
  }
  std::int64_t n_steps(std::int64_t n_nodes) const override { return 2 * n_nodes; }

  void begin(EpisodeState& state) const override {
    state.selecting = true;
    state.node = NodeId{-1};
  }

  bool is_legal(const EpisodeState& state, std::span<const std::int64_t> action) const override {
    if (state.selecting) return is_candidate(state, action[0]);
    return action[0] >= 0 && is_device(state, action[0] - first_device(state));
  }

  ActionEffect apply(EpisodeState& state, std::span<const std::int64_t> action) const override {
    if (state.selecting) {
      state.node = NodeId(action[0]);
      state.selecting = false;
      return ActionEffect::selected;
    }
    state.schedule().place(state.node, DeviceId(action[0] - first_device(state)));
    state.node = NodeId{-1};
    state.selecting = true;
    return ActionEffect::placed;
  }

  void write_mask(const EpisodeState& state, std::span<std::int8_t> mask) const override {
    std::fill(mask.begin(), mask.end(), std::int8_t{0});
    if (state.selecting) {
      for (NodeId candidate : state.schedule().candidates()) mask[candidate.index()] = 1;
    } else {
      const auto first = mask.begin() + first_device(state);
      std::fill_n(first, state.placement().n_devices(), std::int8_t{1});
    }
  }

  std::string describe_legal(const EpisodeState& state) const override {
    if (state.selecting) return "a node is selected now: " + describe_candidates(state);
    const std::int64_t first = first_device(state);
    const auto n_devices = static_cast<std::int64_t>(state.placement().n_devices());
    return "node " + std::to_string(state.node.value) + " is placed now: device d is action " +
           std::to_string(first) + " + d, from " + std::to_string(first) + " to " +
           std::to_string(first + n_devices - 1);
  }

 private:
  static std::int64_t first_device(const EpisodeState& state) {
    return static_cast<std::int64_t>(state.model->max_nodes());
  }
};

}  // namespace

std::unique_ptr<ActionMode> make_sequential(const EnvOptions&) {
  return std::make_unique<Sequential>();
}

}  // namespace doppler::modes
