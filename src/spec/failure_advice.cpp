#include "spec/failure_advice.hpp"

#include <limits.h>

#include <algorithm>
#include <array>
#include <utility>

#include "core/system_folders.hpp"
#include "core/text.hpp"

namespace pipeline::spec {
namespace {

/// Returns the text in the last pair of quotes of the line, else its last word.
std::string_view last_name(std::string_view line) {
  const auto end = line.find_last_of("'\"");
  const auto begin = end == line.npos || end == 0 ? line.npos : line.rfind(line[end], end - 1);
  if (begin != line.npos) return line.substr(begin + 1, end - begin - 1);
  return line.substr(line.rfind(' ') + 1);
}

/// Returns the file to which the line's complaint refers; empty if the line lacks the complaint.
/// Python prints the file's name after the error, shells print it before: `sh: 1: cannot create
/// out.txt: Read-only file system`.
std::string_view complained_of(std::string_view line, std::string_view complaint) {
  const auto found = line.find(complaint);
  if (found == line.npos) return {};
  const auto behind = line.substr(found + complaint.size());
  const auto before = line.substr(0, std::min(line.rfind(": ", found), found));
  return behind.find_first_of("'\"") == behind.npos ? last_name(before) : last_name(behind);
}

/// Returns the file that the line reports as not writable; empty for other lines.
std::string_view unwritable(std::string_view line) {
  // An input is a mount of its own, which cannot be renamed or removed.
  if (const auto name = complained_of(line, "Device or resource busy");
      name.starts_with("/pipe/inputs/"))
    return name;
  for (const std::string_view complaint : {"Read-only file system", "Permission denied"}) {
    const auto name = complained_of(line, complaint);
    // A permission error can have many causes; files written beside the code have relative paths.
    const bool is_write = complaint.starts_with("Read") || line.find("Errno 13") != line.npos ||
                          line.find("cannot create") != line.npos;
    if (is_write && !name.empty() && (complaint.starts_with("Read") || !name.starts_with('/')))
      return name;
  }
  return {};
}

}  // namespace

std::optional<std::string> write_advice(std::string_view output) {
  for (const auto line : core::split(output, '\n'))
    if (const auto name = unwritable(line); !name.empty())
      return "'" + std::string(name.substr(0, 200)) +
             "' cannot be written, as the step's code and inputs are read-only: write results to "
             "${outputs.NAME}, and to $PIPE_SCRATCH what only this attempt needs";
  return std::nullopt;
}

std::vector<std::string> refused_files(std::string_view output) {
  std::vector<std::string> files;
  for (const auto line : core::split(output, '\n'))
    if (const auto name = complained_of(line, "Permission denied"); name.starts_with('/'))
      files.emplace_back(name.substr(0, PATH_MAX));
  return files;
}

std::optional<std::string> outside_advice(const std::filesystem::path& file) {
  std::error_code error;
  if (!file.is_absolute() || core::is_system_path(file.lexically_normal()) ||
      !std::filesystem::exists(file, error))
    return std::nullopt;
  return "'" + file.string() +
         "' is on this machine, but a step reads only its code and its inputs: add `inputs: "
         "{NAME: " +
         file.string() + "}` to the step, and read ${inputs.NAME}";
}

}  // namespace pipeline::spec
