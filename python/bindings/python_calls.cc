#include "python/bindings/python_calls.h"

#include <exception>

#include "python/bindings/convert.h"

namespace doppler::python {

void register_python_errors() {
  py::register_exception_translator([](std::exception_ptr thrown) {
    try {
      if (thrown) std::rethrow_exception(thrown);
    } catch (const OfPython<UsageError>& error) {
      error.raise();
    } catch (const OfPython<ParseError>& error) {
      error.raise();
    } catch (const OfPython<RunError>& error) {
      error.raise();
    }
  });
}

void throw_as_ours(const py::error_already_set& error) {
  const py::module_ errors = py::module_::import("doppler_gym._errors");
  if (error.matches(errors.attr("UsageError"))) throw OfPython<UsageError>(error);
  if (error.matches(errors.attr("ParseError"))) throw OfPython<ParseError>(error);
  if (error.matches(errors.attr("RunError"))) throw OfPython<RunError>(error);
}

py::dict keywords_of(const Parameters& parameters, const std::vector<ParameterSpec>& schema) {
  py::dict keywords;
  for (const ParameterSpec& spec : schema) {
    std::visit(
        [&](const auto& default_value) {
          using T = std::decay_t<decltype(default_value)>;
          keywords[to_python(spec.name)] = parameters.get<T>(spec.name);
        },
        spec.default_value);
  }
  return keywords;
}

}  // namespace doppler::python
