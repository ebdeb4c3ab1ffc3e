#include "docker/build_query.hpp"

#include <nlohmann/json.hpp>

#include "core/digest.hpp"
#include "core/text.hpp"
#include "docker/build_reason.hpp"
#include "docker/index_config.hpp"
#include "docker/package_layers.hpp"
#include "net/url.hpp"

namespace pipeline::docker {

std::string build_query(const ImagePlan& plan, const ImageStatus& status, const EngineInfo& engine,
                        const std::string& run_id) {
  const auto& given = plan.options;
  const bool buildkit = engine.buildkit;
  std::string text =
      std::string("version=") + (buildkit ? "2" : "1") + "&t=" + net::url_encode(status.reference);
  auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) text += std::string("&") + name + "=" + net::url_encode(value);
  };
  nlohmann::json labels = given.labels;
  if (labels.is_null()) labels = nlohmann::json::object();
  labels["pipe.image"] = plan.for_own_dockerfile ? "own" : "environment";
  labels["pipe.digest"] = status.digest;
  labels["pipe.parts"] = parts_to_label(plan.parts);
  if (!plan.layers.empty()) labels["pipe.packages"] = layers_to_label(plan.layers);
  if (!run_id.empty()) labels["pipe.run"] = run_id;
  add("labels", labels.dump());
  add("dockerfile", plan.dockerfile_path);
  nlohmann::json arguments = nlohmann::json::object();
  if (plan.for_own_dockerfile)
    for (auto& [name, value] : read_index_config(this_machine()).proxies)
      arguments[name] = value;  // Predefined build arguments; docker keeps them out of the history.
  for (auto& [name, value] : given.build_args) arguments[name] = value;
  if (!arguments.empty()) add("buildargs", arguments.dump());
  add("target", given.target.value_or(""));
  add("platform", plan.platform);
  add("networkmode", given.network.value_or(""));
  for (auto& host : given.extra_hosts.items()) add("extrahosts", host);
  if (given.cache_from.has_value())
    add("cachefrom", nlohmann::json(given.cache_from.items()).dump());
  if (given.shm_size) add("shmsize", std::to_string(*given.shm_size));
  const bool is_for_one_run = !plan.run_id.empty();  // The setting prevent_build_reuse.
  if (given.no_cache.value_or(false) || is_for_one_run) add("nocache", "1");
  if (!buildkit) add("rm", given.rm.value_or(true) ? "1" : "0");
  if (!buildkit && given.rm.value_or(true)) add("forcerm", "1");
  // Makes Podman's builder keep no images of the stages: if such an image is removed while another
  // build lists the images, that build fails ("layer not known").
  if (engine.podman && !plan.for_own_dockerfile) add("layers", "0");
  return text;
}

std::string with_own_caches(std::string dockerfile, const ImagePlan& plan,
                            const ImageStatus& status, const BuilderOptions& options) {
  core::Hasher system;
  const auto add_all = [&](const char* what, const auto& values) {
    for (const auto& value : values) system.field(what).field(value);
  };
  add_all("from", status.parents);
  if (const auto found = plan.parts.find("environment"); found != plan.parts.end())
    add_all("environment", found->second);
  for (const auto& [name, value] : plan.options.build_args)
    system.field("argument").field(name).field(value);
  add_all("host", plan.options.extra_hosts.items());
  system.field(plan.options.network.value_or(""));
  const auto apt = system.finish().hex();
  core::Hasher python;
  python.field(apt);
  for (const auto& file : plan.context) {
    if (file.path.starts_with("project/")) {
      python.field(options.owner).field(options.root.string());
    } else if (file.content) {
      python.field(file.path).field(*file.content);
    } else if (file.kind == ContextFile::Kind::file) {
      python.field(file.path).field(core::sha256_file(file.source).hex());
    }
  }
  constexpr std::size_t digits = 32;
  dockerfile = core::replaced(std::move(dockerfile), "pipe-apt-of-these-writers",
                              "pipe-apt-" + apt.substr(0, digits));
  return core::replaced(std::move(dockerfile), "pipe-python-of-these-writers",
                        "pipe-python-" + python.finish().hex().substr(0, digits));
}

}  // namespace pipeline::docker
