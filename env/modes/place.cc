// One step takes the device of the next node in a fixed order.
#include "env/modes/modes.h"

namespace doppler::modes {
namespace {

class Place final : public ActionMode {
 public:
  explicit Place(PlaceOrder order) : order_(order) {}

  ActionSpec action_spec(const EnvModel& model) const override {
    return {.sizes = {static_cast<std::int64_t>(model.max_devices())}};
  }
  std::int64_t n_steps(std::int64_t n_nodes) const override { return n_nodes; }

  void begin(EpisodeState& state) const override { state.node = order(state)[0]; }

  bool is_legal(const EpisodeState& state, std::span<const std::int64_t> action) const override {
    return is_device(state, action[0]);
  }

  ActionEffect apply(EpisodeState& state, std::span<const std::int64_t> action) const override {
    state.schedule().place(state.node, DeviceId(action[0]));
    state.node =
        state.schedule().complete() ? NodeId{-1} : order(state)[state.schedule().n_placed()];
    return ActionEffect::placed;
  }

  void write_mask(const EpisodeState& state, std::span<std::int8_t> mask) const override {
    write_device_mask(state, mask);
  }

  std::string describe_legal(const EpisodeState& state) const override {
    return describe_devices(state);
  }

 private:
  [[nodiscard]] std::span<const NodeId> order(const EpisodeState& state) const {
    return order_ == PlaceOrder::b_level ? state.placement().b_level_order()
                                         : state.placement().task().graph.topological_order();
  }

  PlaceOrder order_;
};

}  // namespace

std::unique_ptr<ActionMode> make_place(const EnvOptions& options) {
  return std::make_unique<Place>(options.order);
}

}  // namespace doppler::modes
