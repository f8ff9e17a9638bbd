// Which sanitizer this program is compiled with, by either compiler.
#pragma once

namespace doppler::testing {

#if defined(__SANITIZE_THREAD__)
inline constexpr bool kThreadSanitizer = true;
inline constexpr bool kAddressSanitizer = false;
#elif defined(__SANITIZE_ADDRESS__)
inline constexpr bool kThreadSanitizer = false;
inline constexpr bool kAddressSanitizer = true;
#elif defined(__has_feature)
inline constexpr bool kThreadSanitizer = __has_feature(thread_sanitizer);
inline constexpr bool kAddressSanitizer = __has_feature(address_sanitizer);
#else
inline constexpr bool kThreadSanitizer = false;
inline constexpr bool kAddressSanitizer = false;
#endif
// Their own memory leaves no room for limits of a process.
inline constexpr bool kSanitizer = kThreadSanitizer || kAddressSanitizer;

}  // namespace doppler::testing
