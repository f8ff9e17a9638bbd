// What each source of this folder adds to the module; in this order, because later ones use the
// types of earlier ones.
#pragma once

#include <pybind11/pybind11.h>

namespace doppler::python {

void bind_graphs(pybind11::module_& module);
void bind_clusters(pybind11::module_& module);
void bind_executor(pybind11::module_& module);
void bind_env(pybind11::module_& module);
void bind_environments(pybind11::module_& module);
void bind_vector_environments(pybind11::module_& module);
void bind_datasets(pybind11::module_& module);
void bind_recording(pybind11::module_& module);
void bind_agents(pybind11::module_& module);
void bind_python_agents(pybind11::module_& module);
void bind_training(pybind11::module_& module);
void bind_leaderboard(pybind11::module_& module);
void bind_command(pybind11::module_& module);

}  // namespace doppler::python
