#include <stdexcept>

#include "agents/learned/learned.h"

namespace doppler {

std::unique_ptr<Agent> make_paper_agent(const Parameters& /*parameters*/) {
  throw std::logic_error("not built yet");
}

std::unique_ptr<Trainer> make_paper_trainer(const Parameters& /*parameters*/,
                                            const TrainProblem& /*problem*/) {
  throw std::logic_error("not built yet");
}

}  // namespace doppler
