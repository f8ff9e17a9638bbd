// Handles and errors of HDF5's C library, for this folder's sources alone.
#pragma once

#include <hdf5.h>

#include <cstdint>
#include <mutex>
#include <string>
#include <utility>

#include "datasets/trajectories/episode.h"

namespace doppler::hdf5 {

// HDF5 keeps global state, and builds of it without locks are common: everything that calls it
// holds this.
std::recursive_mutex& library_mutex();

// Makes the library silent, and leaves its clean-up at the end of the process out: a file that
// could not be written must not be tried again then. Called by everything that opens a file.
void start_library();

// An identifier that is closed in every case.
class Handle {
 public:
  using Close = herr_t (*)(hid_t);
  Handle() = default;
  Handle(hid_t id, Close closer) : id_(id), close_(closer) {}
  Handle(Handle&& other) noexcept : id_(std::exchange(other.id_, -1)), close_(other.close_) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(id_, other.id_);
    std::swap(close_, other.close_);
    return *this;
  }
  ~Handle() { static_cast<void>(close()); }

  [[nodiscard]] hid_t id() const { return id_; }
  [[nodiscard]] bool valid() const { return id_ >= 0; }
  // Now; whether it worked.
  bool close() {
    const hid_t id = std::exchange(id_, -1);
    return id < 0 || close_(id) >= 0;
  }

 private:
  hid_t id_ = -1;
  Close close_ = nullptr;
};

// What the library says of the call that failed last: the innermost cause.
std::string cause();

// The type of an element in memory and in files; lives as long as the process.
hid_t type_of(ElementType type);

// Throws RunError that names the file for a negative result.
void check(std::int64_t result, const std::string& path, const char* what);

}  // namespace doppler::hdf5
