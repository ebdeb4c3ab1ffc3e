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

void write_variables(JobPlace& place, const Attempt& attempt, const processes::Workspace& workspace,
                     const fs::path& file) {
  const auto& context = place.environments.host(attempt.step);
  place.environments.require_ready(context);
  auto variables = place.environments.variables(attempt, workspace.layout(), "/tmp", context);
  variables.erase("TMPDIR");
  add_gang_variables(attempt, variables);
  if (!settings::gpu_request(attempt.step.settings->resources).wanted())
    processes::show_gpus({}, GpuIds::uuid, variables);
  core::write_file_atomically(file, variables_text(variables));
}

async::Task<ContainerStart> write_container(JobPlace& place, const Attempt& attempt,
                                            const JobPaths& paths,
                                            const processes::Workspace& workspace) {
  const auto image = co_await place.images->file_of(attempt.step);
  const ImagePlace shared{place.container_runtime, place.agent};
  co_return write_image_job(attempt, image, shared, paths, workspace.layout().code);
}

}  // namespace pipeline::orchestrators::slurm
