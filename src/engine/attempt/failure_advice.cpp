#include "engine/attempt/failure_advice.hpp"

#include <filesystem>
#include <fstream>
#include <optional>
#include <ranges>
#include <string>

#include "engine/cache/cache_key.hpp"

namespace pipeline::engine {
namespace {

namespace fs = std::filesystem;

/// Returns true for a script whose first line ends with `\r\n`, as on Windows.
bool has_windows_lines(const fs::path& file) {
  std::string line;
  std::ifstream in(file, std::ios::binary);
  constexpr int max_line = 256;
  for (char c = 0; line.size() < max_line && in.get(c) && c != '\n';) line += c;
  return line.ends_with('\r') && (line.starts_with("#!") || file.extension() == ".sh");
}

/// Returns advice for a script that the command or the log names; nothing if there is none.
std::optional<std::string> windows_script(const StepSpec& step, const CodeProvider& code,
                                          std::string_view log) {
  std::string named(log);
  for (const auto& argument : step.command.arguments) named += text_of(argument) + "\n";
  for (const auto& file : code.files(step))
    if (named.find(fs::path(file.relative_path).filename()) != named.npos &&
        has_windows_lines(file.source))
      return "'" + file.relative_path +
             "' has Windows line ends, which shells and `#!` take for a part of the last word: "
             "`sed -i 's/\\r$//' " +
             file.relative_path + "`, and in .gitattributes `*.sh text eol=lf`";
  return std::nullopt;
}

/// Returns true if a pipe in the command failed because a program in it ended before it had read
/// all, as `head` does. SIGPIPE then ends the program before it, with the exit code 141 (128 + 13).
bool was_pipe_ended_early(const StepSpec& step, std::string_view log) {
  constexpr std::string_view start = "(parts of the pipe: ";
  const auto parts = log.rfind(start);
  if (!step.command.shell || parts == log.npos) return false;
  const auto codes = log.substr(parts, log.find(')', parts) - parts).substr(start.size());
  bool has_broken_pipe = false;
  for (const auto code : std::views::split(codes, ' ')) {
    const std::string_view text(code.begin(), code.end());
    if (text != "0" && text != "141") return false;
    has_broken_pipe |= text == "141";
  }
  return has_broken_pipe && codes.ends_with(" 0");
}

}  // namespace

void advise(const StepSpec& step, const CodeProvider& code, std::string_view log,
            Failure& failure) {
  if (auto advice = windows_script(step, code, log)) {
    failure.hints = {std::move(*advice)};
    return;
  }
  if (was_pipe_ended_early(step, log))
    failure.hints = {
        "a program that ends before it has read all, as `head` does, ends those before it in the "
        "pipe, which is a failure: `sed -n 1p` reads all, and `(COMMAND || true) | head -1` "
        "accepts the failure"};
  if (!code.failure_advice) return;
  if (auto advice = code.failure_advice(step, log)) failure.hints.push_back(std::move(*advice));
}

}  // namespace pipeline::engine
