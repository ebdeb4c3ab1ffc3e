#include "orchestrators/local/sandboxes.hpp"

#include <algorithm>

#include "orchestrators/processes/process.hpp"
#include "orchestrators/processes/workspace.hpp"

namespace pipeline::orchestrators::local {

namespace fs = std::filesystem;

Sandboxes::Sandboxes(fs::path root, fs::path state, fs::path environments)
    : root_(std::move(root)), state_(std::move(state)), environments_(std::move(environments)) {}

std::shared_ptr<const processes::Sandbox> Sandboxes::sandbox_of(
    const AttemptSpec& attempt, const processes::Workspace& workspace,
    const std::vector<fs::path>& programs, const processes::ProcessOptions& process) {
  if (!processes::Sandbox::is_available()) return nullptr;
  const auto value = [&](const char* name) {
    const auto found = process.environment.find(name);
    return found == process.environment.end() ? std::string() : found->second;
  };
  const fs::path home = value("HOME");
  auto readable = programs;
  for (const auto& program : {process.program, fs::weakly_canonical(process.program)})
    readable.push_back(program);
  const auto add_program_folders = [&](const std::string& folders) {
    for (auto& folder : processes::program_folders(folders, root_, home))
      readable.push_back(std::move(folder));
  };
  for (const auto* name : {"PATH", "LD_LIBRARY_PATH"}) add_program_folders(value(name));
  for (const auto& program : programs)
    for (const auto& file : {program, fs::weakly_canonical(program)})
      add_program_folders(file.parent_path());
  for (const auto* name : {"SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE",
                           "PIPE_NVML", "PIPE_GPU_LOCKS"})
    readable.emplace_back(value(name));
  for (const auto& volume : attempt.step.settings->docker.volumes.items()) {
    const auto source = volume.substr(0, volume.find(':'));
    if (source == "/") return nullptr;
    const bool is_below_home = source == "~" || source.starts_with("~/");
    readable.push_back(is_below_home ? home / source.substr(std::min<std::size_t>(2, source.size()))
                                     : root_ / source);
  }
  if (const auto& step = attempt.step.program) {
    readable.push_back(step->program->executable);
    readable.push_back(step->program->loader);
    readable.insert(readable.end(), step->program->libraries.begin(),
                    step->program->libraries.end());
  }
  std::vector<fs::path> own{attempt.scratch, attempt.outputs, attempt.checkpoint,
                            workspace.temporary()};
  for (const auto& input : attempt.inputs) own.push_back(input.path);
  for (auto& path : own)
    if (state_.empty() || !path.native().starts_with(state_.native() + '/'))
      readable.push_back(std::move(path));
  std::erase_if(readable, [](const fs::path& path) { return path.empty(); });
  Key key{home, std::move(readable)};
  if (const auto known = sandboxes_.find(key); known != sandboxes_.end()) return known->second;
  constexpr std::size_t max_kept = 64;
  if (sandboxes_.size() >= max_kept) sandboxes_.clear();
  auto made = std::make_shared<processes::Sandbox>(root_, home);
  made->allow(state_);
  made->allow(environments_);
  for (const auto& path : key.second) made->allow(path);
  return sandboxes_.emplace(std::move(key), std::move(made)).first->second;
}

}  // namespace pipeline::orchestrators::local
