// The command `doppler-gym` as a function.
#include <pybind11/stl.h>

#include <string>
#include <vector>

#include "cli/run.h"
#include "python/bindings/rooms.h"

namespace doppler::python {

void bind_command(pybind11::module_& module) {
  namespace py = pybind11;
  module.def(
      "run_command",
      [](const std::vector<std::string>& arguments) {
        std::vector<const char*> pointers;
        for (const std::string& argument : arguments) pointers.push_back(argument.c_str());
        pointers.push_back(nullptr);
        const py::gil_scoped_release unlocked;
        return cli::run_command(static_cast<int>(arguments.size()), pointers.data());
      },
      py::arg("arguments"),
      "Runs a command line, the program's name first; returns the exit code. Once a process: it "
      "takes over SIGINT, SIGTERM, SIGHUP and SIGPIPE.");
}

}  // namespace doppler::python
