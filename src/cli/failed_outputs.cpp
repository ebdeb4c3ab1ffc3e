#include "cli/failed_outputs.hpp"

#include <algorithm>
#include <charconv>

#include "core/error.hpp"

namespace pipeline::cli {
namespace {

namespace fs = std::filesystem;

bool is_wanted(const FailedOutput& output, const std::string& wanted) {
  return wanted.empty() || wanted == output.step || wanted == output.name() ||
         wanted == output.step + "." + output.path.stem().string();
}

/// Returns the number of the attempt whose folder this is; 0 if it is none of the step's.
unsigned attempt_of(const std::string& folder, const std::string& step) {
  if (!folder.starts_with(step + ".")) return 0;
  unsigned number = 0;
  const auto* const end = folder.data() + folder.size();
  const auto read = std::from_chars(folder.data() + step.size() + 1, end, number);
  return read.ec == std::errc() && read.ptr == end ? number : 0;
}

}  // namespace

std::vector<FailedOutput> failed_outputs(const store::RunStore& runs, const std::string& run,
                                         const std::vector<store::StepRecord>& steps,
                                         const std::string& wanted) {
  std::vector<std::string> folders;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(runs.failed_folder(run), none))
    folders.push_back(entry.path().filename().string());
  std::vector<FailedOutput> found;
  if (folders.empty()) return found;
  for (const auto& step : steps)
    for (const auto& folder : folders)
      if (const auto attempt = attempt_of(folder, step.name))
        for (const auto& entry : fs::directory_iterator(runs.failed_folder(run) / folder, none))
          if (FailedOutput output{step.name, attempt, entry.path()}; is_wanted(output, wanted))
            found.push_back(std::move(output));
  return found;
}

void copy_failed_output(const FailedOutput& output, const fs::path& destination) {
  std::error_code error;
  fs::copy(output.path, destination, fs::copy_options::recursive | fs::copy_options::copy_symlinks,
           error);
  if (error)
    throw core::system_error("cannot copy " + output.path.string() + " to " + destination.string(),
                             error.value());
}

}  // namespace pipeline::cli
