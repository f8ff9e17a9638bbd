// Action modes: what one step decides. Each is a small strategy over the state of an Env.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "env/env_model.h"
#include "env/partial_schedule.h"
#include "graphs/registry.h"

namespace doppler {

// The part of an environment's state that a mode works on.
struct EpisodeState {
  const EnvModel* model = nullptr;
  std::size_t task = 0;
  std::vector<PartialSchedule> schedules;  // one a task
  // The node whose device is decided next; -1: none (a node is selected, or all are placed).
  NodeId node{-1};
  bool selecting = false;  // `sequential`: the next action is a node
  // `refine`: the whole assignment so far.
  Assignment assignment;

  [[nodiscard]] PartialSchedule& schedule() { return schedules[task]; }
  [[nodiscard]] const PartialSchedule& schedule() const { return schedules[task]; }
  [[nodiscard]] const PlacementModel& placement() const { return *model->tasks()[task].placement; }
};

// What an action did.
enum class ActionEffect : std::uint8_t {
  selected,  // a node was selected
  placed,    // state.schedule has one more node, or several
  replaced   // `refine`: state.assignment has changed; it is measured now
};

// Stateless: everything is in EpisodeState, so that copies of an Env share one mode.
class ActionMode {
 public:
  virtual ~ActionMode() = default;

  [[nodiscard]] virtual ActionSpec action_spec(const EnvModel& model) const = 0;
  // Legal steps of an episode with n nodes.
  [[nodiscard]] virtual std::int64_t n_steps(std::int64_t n_nodes) const = 0;
  // The first node or phase of an episode.
  virtual void begin(EpisodeState& state) const = 0;
  // Whether the action is legal now; its length is that of the spec's sizes.
  [[nodiscard]] virtual bool is_legal(const EpisodeState& state,
                                      std::span<const std::int64_t> action) const = 0;
  // Requires a legal action.
  virtual ActionEffect apply(EpisodeState& state, std::span<const std::int64_t> action) const = 0;
  // Writes the whole mask, [action_spec().mask_size()], 1: legal.
  virtual void write_mask(const EpisodeState& state, std::span<std::int8_t> mask) const = 0;
  // The message's part that says what would be legal.
  [[nodiscard]] virtual std::string describe_legal(const EpisodeState& state) const = 0;
};

// A registered action mode.
struct ActionModeEntry : Description {
  std::function<std::unique_ptr<ActionMode>(const EnvOptions&)> make;
};

// sequential, joint, place, refine, oneshot.
const Registry<ActionModeEntry>& action_modes();

}  // namespace doppler
