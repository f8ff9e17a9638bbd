// Who is told of every step of an episode that somebody else plays.
#pragma once

#include <cstdint>
#include <span>

#include "env/env.h"

namespace doppler {

class StepListener {
 public:
  virtual ~StepListener() = default;
  // After a reset with this seed.
  virtual void began(const Env& env, std::uint64_t seed) = 0;
  // After a step; at the end of the episode env.result() is there.
  virtual void stepped(const Env& env, std::span<const std::int64_t> action,
                       const StepResult& result) = 0;
};

}  // namespace doppler
