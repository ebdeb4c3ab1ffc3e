#include "driver/failed_outputs.hpp"

#include <algorithm>
#include <charconv>

#include "core/error.hpp"
#include "file_tree/tree.hpp"

namespace pipeline::driver {
namespace {

namespace fs = std::filesystem;

bool is_wanted(const FailedOutput& output, const std::string& wanted) {
  return wanted.empty() || wanted == output.step || wanted == output.name() ||
         wanted == output.step + "." + output.path.stem().string();
}

/// Returns the number of the attempt from its folder's name, STEP.NUMBER; 0 if the folder belongs
/// to another step.
unsigned attempt_of(const std::string& folder, const std::string& step) {
  if (!folder.starts_with(step + ".")) return 0;
  unsigned number = 0;
  const auto* const end = folder.data() + folder.size();
  const auto read = std::from_chars(folder.data() + step.size() + 1, end, number);
  return read.ec == std::errc() && read.ptr == end ? number : 0;
}

/// Copies a file, link or folder; adds anything else to `left_out`.
void copy_entry(const fs::path& from, const fs::path& to, std::vector<fs::path>& left_out) {
  const auto check = [&](const std::error_code& error) {
    if (error)
      throw core::system_error("cannot copy " + from.string() + " to " + to.string(),
                               error.value());
  };
  std::error_code error;
  const auto status = fs::symlink_status(from, error);
  check(error);
  if (fs::is_regular_file(status)) {
    const bool is_executable = (status.permissions() & fs::perms::owner_exec) != fs::perms::none;
    file_tree::copy_file(from, to, is_executable ? 0777 : 0666);
  } else if (fs::is_symlink(status)) {
    fs::copy_symlink(from, to, error);
    check(error);
  } else if (fs::is_directory(status)) {
    if (!fs::create_directory(to, error) && !error)
      error = std::make_error_code(std::errc::file_exists);
    check(error);
    fs::directory_iterator entry(from, error);
    for (; !error && entry != fs::directory_iterator(); entry.increment(error))
      copy_entry(entry->path(), to / entry->path().filename(), left_out);
    check(error);
  } else {
    left_out.push_back(from);
  }
}

}  // namespace

std::vector<FailedOutput> failed_outputs(const store::RunStore& store, const std::string& run,
                                         const std::vector<store::StepRecord>& steps,
                                         const std::string& wanted) {
  std::vector<std::string> folders;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(store.paths().failed_folder(run), none))
    folders.push_back(entry.path().filename().string());
  std::vector<FailedOutput> found;
  if (folders.empty()) return found;
  for (const auto& step : steps)
    for (const auto& folder : folders)
      if (const auto attempt = attempt_of(folder, step.name))
        for (const auto& entry :
             fs::directory_iterator(store.paths().failed_folder(run) / folder, none))
          if (FailedOutput output{step.name, attempt, entry.path()}; is_wanted(output, wanted))
            found.push_back(std::move(output));
  return found;
}

std::vector<fs::path> copy_failed_output(const FailedOutput& output, const fs::path& destination) {
  std::vector<fs::path> left_out;
  copy_entry(output.path, destination, left_out);
  return left_out;
}

}  // namespace pipeline::driver
