#include "orchestrators/slurm/image_export.hpp"

#include <fcntl.h>

#include <cerrno>
#include <exception>
#include <functional>

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/file.hpp"
#include "file_tree/tar_stream.hpp"
#include "orchestrators/containers/container_layout.hpp"

namespace pipeline::orchestrators::slurm {
namespace {

/// Adds pipe's mount point to a container, because none can be added to the SquashFS file later.
async::Task<> add_mount_point(docker::EngineApi& engine, const std::string& container,
                              core::CancelSource& cancel) {
  const std::function<net::BodySource()> tar = [] {
    file_tree::ContextFile folder;
    folder.path = std::string(containers::container_folder).substr(1);
    folder.mode = 0755;
    folder.kind = file_tree::ContextFile::Kind::directory;
    return file_tree::tar_stream({folder});
  };
  co_await engine.put_archive(container, "/", tar, cancel);
}

}  // namespace

async::Task<> export_image(docker::EngineApi& engine, const ExportedImage& image,
                           const std::filesystem::path& tar, core::CancelSource& cancel) {
  nlohmann::json body;
  body["Image"] = image.id;
  body["Entrypoint"] = {"/never-started"};
  body["Labels"]["pipe.run"] = image.run;
  body["Labels"]["pipe.state"] = image.owner;
  const auto name = "pipe-" + image.run + "-files-" + image.id.substr(image.id.find(':') + 1, 12);
  co_await engine.remove_container(name);  // The container of a dead driver.
  const auto container =
      co_await engine.create_container(name, std::move(body), image.platform, &cancel);
  std::exception_ptr error;
  try {
    co_await add_mount_point(engine, container, cancel);
    const core::Descriptor file(
        ::open(tar.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    if (!file) throw core::system_error("cannot write " + tar.string(), errno);
    const std::function<void(std::string_view)> on_bytes = [&](std::string_view bytes) {
      core::write_fully(file.get(), bytes, tar);
    };
    co_await engine.get_archive(container, "/", on_bytes, cancel);
  } catch (...) {
    error = std::current_exception();
  }
  co_await engine.remove_container(container);
  if (error) std::rethrow_exception(error);
}

}  // namespace pipeline::orchestrators::slurm
