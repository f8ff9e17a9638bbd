// The engine named "simulator".
#pragma once

#include "executor/engine.h"

namespace doppler {

// Without parameters it runs the Simulator as it is. With them it stands for a system that departs
// from its cost model: what a calibration got wrong, for learning on the real engine (stage III)
// where there is no such engine, or none whose departure is known.
EngineEntry simulator_engine_entry();

}  // namespace doppler
