// Whom stage I imitates: at each step of the policy's own episode, the choices that the teacher
// would make there.
#pragma once

#include <memory>
#include <vector>

#include "agents/agent.h"
#include "agents/demonstrations.h"

namespace doppler {

// Serves one thread.
class Teacher {
 public:
  virtual ~Teacher() = default;
  // Before an episode.
  virtual void begin(std::shared_ptr<const PlacementModel> model, std::uint64_t seed) = 0;
  // Every candidate (device) that it would choose: at least one.
  virtual void nodes(const PartialSchedule& schedule, std::vector<NodeId>& out) = 0;
  virtual void devices(const PartialSchedule& schedule, NodeId node,
                       std::vector<DeviceId>& out) = 0;
};

// The critical path: the candidates of largest b-level, the devices of earliest start, all that
// tie.
std::unique_ptr<Teacher> critical_path_teacher();
// What the steps of an agent choose; requires has_steps().
std::unique_ptr<Teacher> step_teacher(std::unique_ptr<Agent> agent);
// For an agent that decides as a whole: the candidates of largest b-level, each on the device that
// the assignment has for it.
std::unique_ptr<Teacher> assignment_teacher(Assignment assignment);
// The candidate that comes first in the demonstration, on its device there.
std::unique_ptr<Teacher> demonstration_teacher(Demonstration demonstration);

}  // namespace doppler
