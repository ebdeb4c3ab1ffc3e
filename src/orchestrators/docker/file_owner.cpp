#include "orchestrators/docker/file_owner.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include "core/error.hpp"
#include "core/log.hpp"
#include "docker/short_container.hpp"

namespace pipeline::orchestrators::docker_engine {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

bool is_of_another(const fs::path& path) {
  struct stat status {};
  return ::lstat(path.c_str(), &status) == 0 && status.st_uid != ::geteuid();
}

/// Returns true if another user owns something in the folder. A folder that this user cannot read
/// counts itself, so its content need not be read.
bool has_files_of_another(const fs::path& folder) {
  std::error_code error;
  const auto options = fs::directory_options::skip_permission_denied;
  for (fs::recursive_directory_iterator entry(folder, options, error), end; !error && entry != end;
       entry.increment(error))
    if (is_of_another(entry->path())) return true;
  return false;
}

json bind(const fs::path& source, const std::string& target) {
  json mount;
  mount["Type"] = "bind";
  mount["Source"] = source;
  mount["Target"] = target;
  return mount;
}

}  // namespace

async::Task<> take_over_files(docker::EngineApi& engine, const AttemptSpec& attempt,
                              const ContainerOptions& options) {
  if (::geteuid() == 0) co_return;
  const bool is_needed = has_files_of_another(attempt.outputs) ||
                         has_files_of_another(attempt.scratch) ||
                         (!attempt.checkpoint.empty() && has_files_of_another(attempt.checkpoint));
  if (!is_needed) co_return;
  const auto &outputs = containers::container_layout().outputs,
             &checkpoint = containers::container_layout().checkpoint;
  json body;
  body["Image"] = options.image;
  body["User"] = "0:0";
  body["Entrypoint"] = {"chown", "-R", "-h", options.user, outputs, containers::container_scratch};
  body["Labels"] = container_labels(attempt, options);
  auto& host = body["HostConfig"];
  host["NetworkMode"] = "none";
  host["CapDrop"] = {"ALL"};
  host["CapAdd"] = {"CHOWN", "DAC_OVERRIDE", "FOWNER"};
  host["Mounts"].push_back(bind(attempt.outputs, outputs));
  host["Mounts"].push_back(bind(attempt.scratch, containers::container_scratch));
  if (!attempt.checkpoint.empty()) {
    body["Entrypoint"].push_back(checkpoint);
    host["Mounts"].push_back(bind(attempt.checkpoint, checkpoint));
  }
  std::string trouble;
  try {
    const auto name = container_name(attempt) + "-owner";
    const auto [printed, code] = co_await docker::run_to_end(engine, name, std::move(body));
    if (code != 0) trouble = "exit code " + std::to_string(code) + ": " + printed;
  } catch (const core::EnvironmentError& error) {
    trouble = error.what();
  }
  if (!trouble.empty())
    core::log::info("files of '" + attempt.step.name + "' stay with another owner: " + trouble);
}

}  // namespace pipeline::orchestrators::docker_engine
