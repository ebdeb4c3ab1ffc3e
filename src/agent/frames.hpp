/// @file
/// The frames that the agent writes for a step's output, one a line (agent/main.cpp): `o0 4 TEXT`,
/// `e21 4 TEXT` for lines of the two streams, `O10 4 TEXT` and `E32 4 TEXT` for parts without a
/// line end, `w43 2 ..` with the waits of a stalled step's processes (waits.hpp) or with an empty
/// text once the services of the step are ready, `a53 3 250` when a silent step made progress
/// 250 ms ago, and at the end `u64 2 {}` with the step's resource usage, and `.74`. The two numbers
/// of a frame are its offset among all bytes of frames, and the size of its text.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

namespace pipeline::agent {

struct Frame {
  char kind;
  std::uint64_t offset;   ///< Among all bytes of frames.
  std::string_view text;  ///< A part of the line that was parsed.
};

/// Returns whether the line begins with a kind and an offset. Lines of the container runtime, and
/// of programs that ran before the agent, do not.
bool begins_as_frame(std::string_view line);
/// Parses a line without its end. Returns nothing for a line that is not a frame, or whose size is
/// wrong: a node that rotates the log in the middle of a line joins the line's beginning with a
/// later line.
std::optional<Frame> parse_frame(std::string_view line);
/// Returns how long ago a silent step last made progress, as an `a` frame says; 0 for other frames.
std::chrono::milliseconds progress_age(const Frame& frame);
/// Calls on_bytes with the bytes of an output frame; does nothing for frames of other kinds.
/// @param on_bytes (is stderr, bytes)
void pass_output(const Frame& frame, const std::function<void(bool, std::string_view)>& on_bytes);

}  // namespace pipeline::agent
