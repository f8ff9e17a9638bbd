#include "datasets/trajectories/hdf5.h"

#include <array>
#include <cstring>
#include <system_error>

#include "graphs/error.h"

namespace doppler::hdf5 {
namespace {

// The text of the innermost entry; where the system gave a code, its words.
herr_t take_innermost(unsigned n, const H5E_error2_t* entry, void* target) {
  if (n > 0 || entry->desc == nullptr) return 0;
  std::string& text = *static_cast<std::string*>(target);
  text = entry->desc;
  const std::size_t at = text.find("errno = ");
  if (at == std::string::npos) return 0;
  const int code = std::atoi(text.c_str() + at + std::strlen("errno = "));
  if (code != 0) text = std::generic_category().message(code);
  return 0;
}

hid_t make_boolean() {
  const hid_t type = H5Tenum_create(H5T_NATIVE_INT8);
  std::int8_t value = 0;
  H5Tenum_insert(type, "FALSE", &value);
  value = 1;
  H5Tenum_insert(type, "TRUE", &value);
  return type;
}

}  // namespace

std::recursive_mutex& library_mutex() {
  static std::recursive_mutex mutex;
  return mutex;
}

void start_library() {
  static const bool started = [] {
    H5dont_atexit();
    H5open();
    return true;
  }();
  static_cast<void>(started);
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);  // of this thread
}

std::string cause() {
  std::string text;
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, take_innermost, &text);
  H5Eclear2(H5E_DEFAULT);
  return text.empty() ? "HDF5 does not say why" : text;
}

hid_t type_of(ElementType type) {
  static const std::array<hid_t, 11> types = {
      make_boolean(),    H5T_NATIVE_INT8,  H5T_NATIVE_UINT8,  H5T_NATIVE_INT16,
      H5T_NATIVE_UINT16, H5T_NATIVE_INT32, H5T_NATIVE_UINT32, H5T_NATIVE_INT64,
      H5T_NATIVE_UINT64, H5T_NATIVE_FLOAT, H5T_NATIVE_DOUBLE};
  return types[static_cast<std::size_t>(type)];
}

void check(std::int64_t result, const std::string& path, const char* what) {
  if (result >= 0) return;
  throw RunError(path + ": cannot " + what + ": " + cause());
}

}  // namespace doppler::hdf5
