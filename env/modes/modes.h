// The action modes of this build, one file each. Private to env/.
#pragma once

#include <memory>
#include <string>

#include "env/action_mode.h"

namespace doppler::modes {

std::unique_ptr<ActionMode> make_sequential(const EnvOptions& options);
std::unique_ptr<ActionMode> make_joint(const EnvOptions& options);
std::unique_ptr<ActionMode> make_place(const EnvOptions& options);
std::unique_ptr<ActionMode> make_refine(const EnvOptions& options);
std::unique_ptr<ActionMode> make_oneshot(const EnvOptions& options);

// Whether `device` is one of the task's devices (padding is not).
inline bool is_device(const EpisodeState& state, std::int64_t device) {
  return device >= 0 && device < static_cast<std::int64_t>(state.placement().n_devices());
}
// Whether `node` is a candidate of the task's graph.
inline bool is_candidate(const EpisodeState& state, std::int64_t node) {
  return node >= 0 && node < static_cast<std::int64_t>(state.placement().n_nodes()) &&
         state.schedule().is_candidate(NodeId(node));
}
// The mask of a mode that decides the device of state.node: every device of the task, if there is
// one.
void write_device_mask(const EpisodeState& state, std::span<std::int8_t> mask);
// "a device from 0 to 3"; "nodes 0 2 5 ..." of the candidates.
std::string describe_devices(const EpisodeState& state);
std::string describe_candidates(const EpisodeState& state);

}  // namespace doppler::modes
