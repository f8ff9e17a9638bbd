#include <algorithm>

#include "env/action_mode.h"
#include "env/modes/modes.h"

namespace doppler {

const Registry<ActionModeEntry>& action_modes() {
  static const Registry<ActionModeEntry> registry = [] {
    Registry<ActionModeEntry> built_in("action mode");
    const auto add = [&](std::string name, std::string summary, std::string source, auto make) {
      ActionModeEntry entry;
      entry.name = std::move(name);
      entry.summary = std::move(summary);
      entry.source = std::move(source);
      entry.make = make;
      built_in.add(std::move(entry));
    };
    add("sequential", "alternately a node (SEL) and its device (PLC)", "DOPPLER paper, section 4.2",
        modes::make_sequential);
    add("joint", "a node and its device at once", "own: single-policy baselines",
        modes::make_joint);
    add("place", "the device of the next node in a fixed order",
        "Placeto (Addanki et al., NeurIPS 2019), one pass, as the DOPPLER authors ran it",
        modes::make_place);
    add("refine", "the next node's new device in a full assignment, each step measured",
        "Placeto (Addanki et al., NeurIPS 2019), section 3", modes::make_refine);
    add("oneshot", "the whole assignment", "GDP (Zhou et al., 2019)", modes::make_oneshot);
    return built_in;
  }();
  return registry;
}

namespace modes {

void write_device_mask(const EpisodeState& state, std::span<std::int8_t> mask) {
  std::fill(mask.begin(), mask.end(), std::int8_t{0});
  if (state.node.value < 0) return;
  std::fill_n(mask.begin(), state.placement().n_devices(), std::int8_t{1});
}

std::string describe_devices(const EpisodeState& state) {
  return "a device from 0 to " + std::to_string(state.placement().n_devices() - 1);
}

std::string describe_candidates(const EpisodeState& state) {
  constexpr std::size_t kShown = 10;
  const auto candidates = state.schedule().candidates();
  std::vector<NodeId> sorted(candidates.begin(), candidates.end());
  std::sort(sorted.begin(), sorted.end());
  std::string text = "nodes";
  for (std::size_t i = 0; i < sorted.size() && i < kShown; ++i) {
    text += " " + std::to_string(sorted[i].value);
  }
  if (sorted.size() > kShown) text += " and " + std::to_string(sorted.size() - kShown) + " more";
  return text;
}

}  // namespace modes
}  // namespace doppler
