#include "orchestrators/kubernetes/gang_job.hpp"

#include <filesystem>
#include <system_error>

#include "core/file.hpp"

namespace pipeline::orchestrators::kubernetes {

namespace fs = std::filesystem;

bool has_indexed_jobs(std::pair<int, int> version) { return version >= std::pair(1, 24); }

void make_indexed(nlohmann::json& spec, const AttemptSpec& attempt, const GangJob& job) {
  spec["completionMode"] = "Indexed";
  spec["completions"] = spec["parallelism"] = attempt.process->nodes;
  if (!job.pod_group.empty())
    spec["template"]["spec"]["schedulingGroup"]["podGroupName"] = job_name(attempt);
}

std::string folder_of_node(const std::string& node, const char* folder) {
  return "nodes/" + node + "/" + folder;
}

void link_first_node(const AttemptSpec& attempt) {
  const auto work = attempt.outputs.parent_path();
  for (const auto& [folder, name] :
       {std::pair(attempt.outputs, outputs_of_node), std::pair(attempt.scratch, scratch_of_node)}) {
    const auto link = work / folder_of_node("0", name);
    core::make_folders(link.parent_path());
    std::error_code error;
    if (fs::is_symlink(fs::symlink_status(link, error))) continue;
    fs::create_symlink(folder.lexically_relative(link.parent_path()), link, error);
    if (error) throw core::system_error("cannot create the link " + link.string(), error.value());
  }
}

void empty_folders(const AttemptSpec& attempt) {
  const auto empty = [](const fs::path& folder) {
    core::remove_tree(folder);
    core::make_folders(folder);
  };
  empty(attempt.outputs);
  empty(attempt.scratch);
  if (!attempt.process || !attempt.process->addresses->nodes_share_description) return;
  for (unsigned node = 1; node < attempt.process->nodes; ++node)
    for (const char* name : {outputs_of_node, scratch_of_node})
      empty(attempt.outputs.parent_path() / folder_of_node(std::to_string(node), name));
}

}  // namespace pipeline::orchestrators::kubernetes
