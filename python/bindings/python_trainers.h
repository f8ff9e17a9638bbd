// Trainers that are written in Python.
#pragma once

#include <pybind11/pybind11.h>

#include <memory>
#include <string>

#include "agents/training.h"

namespace doppler::python {

// How a trainer is made: `factory(tasks, options, **keywords)`.
struct PythonTrainerSource {
  std::string agent;
  pybind11::object factory;
  pybind11::dict keywords;
};

// Requires the interpreter's lock, which the trainer takes itself later. Throws what Python raises:
// the package's errors as ours, others as RunError.
std::unique_ptr<Trainer> make_python_trainer(const PythonTrainerSource& source,
                                             const TrainProblem& problem);

}  // namespace doppler::python
