// One step takes a (node, device) pair: as one number, or factored into two.
#include <algorithm>

#include "env/modes/modes.h"

namespace doppler::modes {
namespace {

class Joint final : public ActionMode {
 public:
  explicit Joint(bool factored) : factored_(factored) {}

  ActionSpec action_spec(const EnvModel& model) const override {
    const auto n_nodes = static_cast<std::int64_t>(model.max_nodes());
    const auto n_devices = static_cast<std::int64_t>(model.max_devices());
    if (factored_) return {.sizes = {n_nodes, n_devices}, .discrete = false};
    return {.sizes = {n_nodes * n_devices}};
  }
  std::int64_t n_steps(std::int64_t n_nodes) const override { return n_nodes; }

  void begin(EpisodeState& state) const override { state.node = NodeId{-1}; }

  bool is_legal(const EpisodeState& state, std::span<const std::int64_t> action) const override {
    if (!factored_ && action[0] < 0) return false;
    const auto [node, device] = split(state, action);
    return is_candidate(state, node) && is_device(state, device);
  }

  ActionEffect apply(EpisodeState& state, std::span<const std::int64_t> action) const override {
    const auto [node, device] = split(state, action);
    state.schedule().place(NodeId(node), DeviceId(device));
    return ActionEffect::placed;
  }

  void write_mask(const EpisodeState& state, std::span<std::int8_t> mask) const override {
    std::fill(mask.begin(), mask.end(), std::int8_t{0});
    const std::size_t n_devices = state.placement().n_devices();
    for (NodeId candidate : state.schedule().candidates()) {
      if (factored_) {
        mask[candidate.index()] = 1;
      } else {
        const std::size_t first = candidate.index() * state.model->max_devices();
        std::fill_n(mask.begin() + static_cast<std::ptrdiff_t>(first), n_devices, std::int8_t{1});
      }
    }
    if (factored_) {
      std::fill_n(mask.begin() + static_cast<std::ptrdiff_t>(state.model->max_nodes()), n_devices,
                  std::int8_t{1});
    }
  }

  std::string describe_legal(const EpisodeState& state) const override {
    const std::string form =
        factored_ ? "(node, device)"
                  : "node * " + std::to_string(state.model->max_devices()) + " + device";
    return form + " with one of " + describe_candidates(state) + " and " + describe_devices(state);
  }

 private:
  [[nodiscard]] std::pair<std::int64_t, std::int64_t> split(
      const EpisodeState& state, std::span<const std::int64_t> action) const {
    if (factored_) return {action[0], action[1]};
    const auto n_devices = static_cast<std::int64_t>(state.model->max_devices());
    return {action[0] / n_devices, action[0] % n_devices};
  }

  bool factored_;
};

}  // namespace

std::unique_ptr<ActionMode> make_joint(const EnvOptions& options) {
  return std::make_unique<Joint>(options.factored);
}

}  // namespace doppler::modes
