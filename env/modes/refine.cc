// From a full assignment, one step takes the next node's new device, in b-level order, one pass.
// state.schedule holds the nodes that the pass has visited.
#include "env/modes/modes.h"

namespace doppler::modes {
namespace {

class Refine final : public ActionMode {
 public:
  ActionSpec action_spec(const EnvModel& model) const override {
    return {.sizes = {static_cast<std::int64_t>(model.max_devices())}};
  }
  std::int64_t n_steps(std::int64_t n_nodes) const override { return n_nodes; }

  void begin(EpisodeState& state) const override {
    state.node = state.placement().b_level_order()[0];
  }

  bool is_legal(const EpisodeState& state, std::span<const std::int64_t> action) const override {
    return is_device(state, action[0]);
  }

  ActionEffect apply(EpisodeState& state, std::span<const std::int64_t> action) const override {
    const DeviceId device(action[0]);
    state.schedule().place(state.node, device);
    state.assignment[state.node] = device;
    state.node = state.schedule().complete()
                     ? NodeId{-1}
                     : state.placement().b_level_order()[state.schedule().n_placed()];
    return ActionEffect::replaced;
  }

  void write_mask(const EpisodeState& state, std::span<std::int8_t> mask) const override {
    write_device_mask(state, mask);
  }

  std::string describe_legal(const EpisodeState& state) const override {
    return describe_devices(state);
  }
};

}  // namespace

std::unique_ptr<ActionMode> make_refine(const EnvOptions&) { return std::make_unique<Refine>(); }

}  // namespace doppler::modes
