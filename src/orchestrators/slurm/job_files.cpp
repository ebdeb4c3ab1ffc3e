#include "orchestrators/slurm/job_files.hpp"

#include <sys/stat.h>

#include "core/error.hpp"
#include "core/file.hpp"
#include "orchestrators/processes/step_variables.hpp"
#include "orchestrators/slurm/gang_job.hpp"
#include "orchestrators/slurm/image_job.hpp"
#include "settings/accelerator.hpp"

namespace pipeline::orchestrators::slurm {

namespace fs = std::filesystem;

void make_private_folder(const fs::path& folder) {
  core::make_folders(folder);
  if (chmod(folder.c_str(), 0700) != 0)
    throw core::system_error("cannot make " + folder.string() + " private", errno);
}

void write_variables(JobContext& context, const Attempt& attempt,
                     const processes::Workspace& workspace, const fs::path& file) {
  const auto& host = context.environments.host(attempt.step);
  context.environments.require_ready(host);
  auto variables = context.environments.variables(attempt, workspace.layout(), "/tmp", host);
  variables.erase("TMPDIR");
  add_gang_variables(attempt, variables);
  if (!settings::gpu_request(attempt.step.settings->resources).wanted())
    processes::show_gpus({}, GpuIds::uuid, variables);
  core::write_file_atomically(file, variables_text(variables));
}

async::Task<ContainerStart> write_container(JobContext& context, const Attempt& attempt,
                                            const JobPaths& paths,
                                            const processes::Workspace& workspace) {
  const auto image = co_await context.images->file_of(attempt.step);
  const ImageRuntime runtime{context.container_runtime, context.agent};
  co_return write_image_job(attempt, image, runtime, paths, workspace.layout().code);
}

}  // namespace pipeline::orchestrators::slurm
