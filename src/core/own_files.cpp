#include "core/own_files.hpp"

#include <fstream>
#include <string>

namespace pipeline::core {

namespace fs = std::filesystem;

bool is_state_folder(const fs::path& folder) {
  const auto name = folder.filename().string();
  std::error_code error;
  return name == ".pipe" || name.starts_with(".pipe-copy-") ||
         fs::is_regular_file(folder / "pipe.db", error);
}

bool is_own_file(const fs::path& file) {
  const auto name = file.filename().string();
  // write_file_atomically() writes a lock file as NAME.lock.PID.NUMBER.tmp, and then renames it.
  if (name.ends_with(".tmp")) return name.find(".lock.") != name.npos;
  if (!name.ends_with(".lock")) return false;
  // Other programs write files that end in .lock, too. The lock file of a pipeline begins with this
  // line, which lockfile/text.cpp writes.
  std::ifstream stream(file);
  std::string line;
  std::getline(stream, line);
  return line.starts_with("# The packages that the environments of this pipeline's steps");
}

}  // namespace pipeline::core
