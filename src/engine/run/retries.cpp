#include "engine/run/retries.hpp"

#include <algorithm>
#include <fstream>
#include <string>

#include "settings/failure_pattern.hpp"

namespace pipeline::engine {
namespace {

/// A shell's exit code for a command that a signal has ended is this and the signal's number.
constexpr int first_signal_code = 128;

/// Returns true if the file contains the text; false for a file that cannot be read. Reads the file
/// in parts, because a log and its lines have any length.
bool has_text(const std::filesystem::path& file, const std::string& text) {
  constexpr std::size_t part_size = 1 << 20;
  std::ifstream log(file, std::ios::binary);
  std::string part;
  while (log) {
    // The text may begin at the end of the last part.
    part.erase(0, part.size() - std::min(part.size(), text.size()));
    const auto kept = part.size();
    part.resize(kept + part_size);
    log.read(part.data() + kept, part_size);
    part.resize(kept + static_cast<std::size_t>(log.gcount()));
    if (part.find(text) != std::string::npos) return true;
  }
  return false;
}

/// Returns the exit code of the command. For a command that a signal has ended, this is 128 and the
/// signal's number on every orchestrator, as in a shell.
std::optional<int> exit_code_of(const FailedAttempt& failed) {
  const auto failure_kind = failed.failure.kind;
  if (failure_kind != FailureKind::exit_code && failure_kind != FailureKind::signal)
    return std::nullopt;
  return failed.result.signal ? first_signal_code + failed.result.signal : failed.result.exit_code;
}

bool matches(const settings::FailurePattern& pattern, const FailedAttempt& failed) {
  if (pattern.kind) return failed.failure.kind == *pattern.kind;
  if (pattern.exit_code) return exit_code_of(failed) == pattern.exit_code;
  if (pattern.signal) return exit_code_of(failed) == first_signal_code + *pattern.signal;
  return failed.failure.message.find(pattern.text) != std::string::npos ||
         has_text(failed.log, pattern.text);
}

}  // namespace

bool is_named(const FailedAttempt& failed, const StringList& patterns) {
  return std::ranges::any_of(patterns.items(), [&](const std::string& text) {
    return matches(*settings::parse_failure(text), failed);
  });
}

}  // namespace pipeline::engine
