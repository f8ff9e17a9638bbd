// doppler_gym._core: the C++ library as Python sees it.
#include <pybind11/pybind11.h>

#include <exception>

#include "graphs/error.h"
#include "python/bindings/convert.h"
#include "python/bindings/rooms.h"

namespace doppler::python {
namespace {

// The package's exception classes, for the lifetime of the process.
struct Exceptions {
  py::object base, usage, invalid, parse, run;
};

void raise(const py::object& type, const Error& error) {
  PyErr_SetObject(type.ptr(), to_python(error.what()).ptr());
}

void register_exceptions() {
  const py::module_ errors = py::module_::import("doppler_gym._errors");
  // Never destroyed: an error may be raised while the interpreter shuts down.
  static const auto* exceptions = new Exceptions{
      errors.attr("DopplerError"), errors.attr("UsageError"), errors.attr("InvalidError"),
      errors.attr("ParseError"), errors.attr("RunError")};
  py::register_exception_translator([](std::exception_ptr thrown) {
    try {
      if (thrown) std::rethrow_exception(thrown);
    } catch (const UsageError& error) {
      raise(exceptions->usage, error);
    } catch (const InvalidError& error) {
      raise(exceptions->invalid, error);
    } catch (const ParseError& error) {
      raise(exceptions->parse, error);
    } catch (const RunError& error) {
      raise(exceptions->run, error);
    } catch (const Error& error) {
      raise(exceptions->base, error);
    }
  });
}

}  // namespace
}  // namespace doppler::python

PYBIND11_MODULE(_core, module) {
  namespace python = doppler::python;
  module.doc() = "The C++ library behind doppler_gym; use the names of doppler_gym.";
  module.attr("__version__") = DOPPLER_VERSION;
  python::register_exceptions();
  python::bind_graphs(module);
  python::bind_clusters(module);
  python::bind_executor(module);
  python::bind_env(module);
  python::bind_environments(module);
  python::bind_vector_environments(module);
  python::bind_datasets(module);
  python::bind_recording(module);
  python::bind_agents(module);
  python::bind_python_agents(module);
  python::bind_training(module);
  python::bind_leaderboard(module);
  python::bind_command(module);
}
