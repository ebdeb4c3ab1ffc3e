#include "orchestrators/slurm/program_files.hpp"

#include <sys/stat.h>

#include <string>
#include <system_error>
#include <vector>

#include "core/digest.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "docker/program_image.hpp"

namespace pipeline::orchestrators::slurm {
namespace {

namespace fs = std::filesystem;

/// Returns a name that changes with each change of a file.
std::string program_folder_name(const std::vector<docker::ContextFile>& files) {
  constexpr std::size_t digits = 16;
  core::Hasher hasher;
  for (const auto& file : files) {
    struct stat status {};
    if (file.kind != docker::ContextFile::Kind::file || ::stat(file.source.c_str(), &status) != 0)
      continue;
    hasher.field(file.path)
        .field(file.source.string())
        .field(std::to_string(status.st_size))
        .field(std::to_string(status.st_mtim.tv_sec) + "." +
               std::to_string(status.st_mtim.tv_nsec));
  }
  return hasher.finish().hex().substr(0, digits);
}

}  // namespace

fs::path program_folder(const fs::path& run_folder, const Program& program) {
  const auto files = docker::program_files(program);
  const auto programs = run_folder / programs_folder;
  const auto folder = programs / program_folder_name(files);
  std::error_code error;
  if (fs::is_directory(folder, error)) return folder;
  core::make_folders(programs);
  const core::TemporaryFolder made(programs);
  // program_files() lists folders before their files, the first of which is `pipe/program`.
  for (const auto& file : files) {
    const auto path = made.path() / file.path;
    if (file.kind == docker::ContextFile::Kind::directory) {
      core::make_folders(path);
      continue;
    }
    fs::copy_file(file.source, path, error);
    if (!error) fs::permissions(path, static_cast<fs::perms>(file.mode), error);
    if (error)
      throw core::EnvironmentError("cannot copy " + file.source.string() +
                                   " for the nodes: " + error.message());
  }
  fs::rename(made.path() / fs::path(program_target).relative_path(), folder);
  return folder;
}

}  // namespace pipeline::orchestrators::slurm
