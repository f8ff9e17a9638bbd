// The engine named "cpu".
#pragma once

#include <memory>

#include "executor/engine.h"

namespace doppler {

EngineEntry cpu_engine_entry();

}  // namespace doppler
