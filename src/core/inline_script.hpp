/// @file
/// Finds the script that a shell or Python gets as the argument of `-c`.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace pipeline::core {

/// Returns true if the program, by its name or path, is a POSIX shell.
inline bool is_shell(std::string_view program) {
  program.remove_prefix(program.rfind('/') + 1);
  for (const std::string_view name : {"sh", "bash", "dash", "ash", "zsh", "ksh", "mksh"})
    if (program == name) return true;
  return false;
}

/// Returns the index of the argument of `-c` (`-ec`, `-o pipefail -c`) among the first options
/// after a program.
/// @param program the program's own index
/// @param count the number of words
/// @param text_of returns the word of an index, as something that std::string_view takes
template <class TextOf>
std::optional<std::size_t> inline_script(std::size_t program, std::size_t count,
                                         const TextOf& text_of) {
  for (std::size_t i = program + 1; i + 1 < count; ++i) {
    const std::string_view option = text_of(i);
    if (!option.starts_with('-') && !option.starts_with('+')) break;
    if (option.starts_with("--")) continue;
    if (option.ends_with('c')) return i + 1;
    // Shells' `-o NAME` and `-eo NAME`; Python's `-W ACTION` and `-X OPTION`.
    if (option.ends_with('o') || option == "-W" || option == "-X") ++i;
  }
  return std::nullopt;
}

}  // namespace pipeline::core
