#include "settings/failure_pattern.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <csignal>
#include <cstring>
#include <utility>
#include <vector>

#include "core/diagnostic.hpp"
#include "core/identifier.hpp"
#include "core/text.hpp"

namespace pipeline::settings {
namespace {

constexpr std::array kinds{std::pair{"timeout", FailureKind::timed_out},
                           std::pair{"timed_out", FailureKind::timed_out},
                           std::pair{"out_of_memory", FailureKind::out_of_memory},
                           std::pair{"infrastructure", FailureKind::infrastructure},
                           std::pair{"stalled", FailureKind::stalled},
                           std::pair{"exit_code", FailureKind::exit_code},
                           std::pair{"signal", FailureKind::signal},
                           std::pair{"exception", FailureKind::exception},
                           std::pair{"missing_output", FailureKind::missing_output},
                           std::pair{"bad_output", FailureKind::bad_output}};

/// The largest exit code of a process, and the largest signal of Linux.
constexpr int max_exit_code = 255, max_signal = 64;

/// Returns 75 for `exit 75`; nothing for another word, or a number that is not between 1 and `max`.
std::optional<int> number_after(std::string_view word, std::string_view text, int max) {
  if (!text.starts_with(word)) return std::nullopt;
  text.remove_prefix(word.size());
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 1 || number > max)
    return std::nullopt;
  return number;
}

/// Returns true for a text that is written like the name of a kind.
bool has_form_of_kind(std::string_view text) {
  return core::all(text, [](char c) { return core::is_lower(c) || c == '_'; });
}

/// Returns the signal's number for `KILL` and `SIGKILL`; 0 for a text that names no signal.
int signal_named(std::string_view text) {
  if (text.starts_with("SIG")) text.remove_prefix(3);
  for (int number = 1; number < NSIG; ++number)
    if (const char* name = sigabbrev_np(number); name && text == name) return number;
  return 0;
}

/// Returns `75` for `exit75` and `exit:75`; empty for other texts.
std::string_view misspelt_exit(std::string_view text) {
  if (!text.starts_with("exit") || text.starts_with("exit ")) return {};
  text.remove_prefix(std::min(text.find_first_not_of("_:=-", 4), text.size()));
  return core::all(text, core::is_digit) ? text : std::string_view();
}

}  // namespace

std::optional<FailurePattern> parse_failure(std::string_view text) {
  if (text.empty() || core::has_control_characters(text) || core::all(text, core::is_digit) ||
      !misspelt_exit(text).empty() || (text.starts_with("SIG") && signal_named(text) > 0))
    return std::nullopt;
  FailurePattern pattern;
  if (text.starts_with("exit ")) {
    pattern.exit_code = number_after("exit ", text, max_exit_code);
    return pattern.exit_code ? std::optional(pattern) : std::nullopt;
  }
  if (text.starts_with("signal ")) {
    pattern.signal = number_after("signal ", text, max_signal);
    return pattern.signal ? std::optional(pattern) : std::nullopt;
  }
  const auto kind = std::ranges::find(kinds, text, [](const auto& each) { return each.first; });
  if (kind != kinds.end())
    pattern.kind = kind->second;
  else if (has_form_of_kind(text))
    return std::nullopt;
  else
    pattern.text = text;
  return pattern;
}

std::string nearest_failure(std::string_view text) {
  if (core::all(text, core::is_digit)) return "exit " + std::string(text);
  if (const auto code = misspelt_exit(text); !code.empty()) return "exit " + std::string(code);
  if (text == "oom") return "out_of_memory";
  if (const auto space = text.find(' '); space != text.npos) text.remove_prefix(space + 1);
  if (const auto number = signal_named(text)) return "signal " + std::to_string(number);
  std::vector<std::string> names;
  for (const auto& [name, kind] : kinds) names.emplace_back(name);
  return std::string(core::closest(text, names).value_or(""));
}

}  // namespace pipeline::settings
