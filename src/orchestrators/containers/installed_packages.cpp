#include "orchestrators/containers/installed_packages.hpp"

#include <nlohmann/json.hpp>

#include "core/log.hpp"
#include "docker/short_container.hpp"

namespace pipeline::orchestrators::containers {
namespace {

// Lists the packages of the Python that find_python() of templates/image/common.sh chooses. The
// shell is not a login shell, whose start-up files may print.
constexpr const char* list_packages = R"SH(
for python in python python3; do
  command -v "$python" >/dev/null || continue
  exec "$python" -c '
from importlib import metadata
print("\n".join(sorted("%s %s %s" % (each.metadata["Name"], each.version, each.read_text("direct_url.json") or "") for each in metadata.distributions())))'
done
exit 1)SH";

}  // namespace

async::Task<std::string> installed_packages(docker::EngineApi& engine, std::string image,
                                            StringMap labels) {
  const auto id = image.substr(image.find(':') + 1, 12);
  const auto name = "pipe-" + labels["pipe.run"] + "-packages-" + id;
  nlohmann::json body;
  body["Image"] = image;
  body["Entrypoint"] = {"/bin/sh", "-c", list_packages};
  body["Labels"] = labels;
  body["HostConfig"]["NetworkMode"] = "none";
  std::string why;
  try {
    auto [text, code] = co_await docker::run_to_end(engine, name, std::move(body));
    if (code == 0) co_return text;
    why = text;
  } catch (const docker::EngineError& error) {
    why = error.what();
  }
  core::log::info("the Python packages of " + image + " cannot be listed: " + why);
  co_return image;
}

}  // namespace pipeline::orchestrators::containers
