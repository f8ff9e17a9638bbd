#include "executor/execution.h"

#include <ostream>

namespace doppler {

std::ostream& operator<<(std::ostream& out, const Execution& execution) {
  out << "Execution: makespan " << execution.makespan << " s on " << execution.devices.size()
      << " devices, " << execution.bytes_moved << " bytes moved, " << execution.bytes_local
      << " bytes local";
  if (execution.out_of_memory) {
    out << ", device " << execution.out_of_memory->device << " out of memory: needs "
        << execution.out_of_memory->needed << " of " << execution.out_of_memory->available
        << " bytes";
  }
  return out;
}

}  // namespace doppler
