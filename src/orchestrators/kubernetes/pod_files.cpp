#include "orchestrators/kubernetes/pod_files.hpp"

#include <string_view>
#include <utility>

#include "core/diagnostic.hpp"
#include "orchestrators/kubernetes/manifest.hpp"
#include "orchestrators/kubernetes/short_forms.hpp"

namespace pipeline::orchestrators::kubernetes {

using nlohmann::json;

void PodFiles::add(const std::filesystem::path& source, bool is_folder, const std::string& target,
                   bool read_only) {
  if (!claim_.name.empty()) return add_shared(source, target, read_only);
  const auto name = "files-" + std::to_string(volumes.size());
  volumes.push_back(
      {{"name", name},
       {"hostPath", {{"path", source.string()}, {"type", is_folder ? "Directory" : "File"}}}});
  mounts.push_back({{"name", name}, {"mountPath", target}, {"readOnly", read_only}});
}

void PodFiles::add_part(const std::filesystem::path& whole, const std::string& part,
                        const std::string& target) {
  add(whole, true, target, false);
  auto& mount = mounts.back();
  const auto inside = mount.value("subPath", std::string());
  mount.erase("subPath");
  mount["subPathExpr"] = (inside.empty() ? "" : escape_references(inside) + "/") + part;
}

void PodFiles::add_shared(const std::filesystem::path& source, const std::string& target,
                          bool read_only) {
  const auto inside = std::filesystem::weakly_canonical(source).lexically_relative(
      std::filesystem::weakly_canonical(claim_.root));
  if (inside.empty() || *inside.begin() == "..")
    throw core::InputError(
        "the claim '" + claim_.name + "' does not hold " + source.string() +
            ": this machine sees the claim's content at " + claim_.root.string(),
        "let `state` (--state, PIPE_HOME) be a folder there, or correct the claim's `path`");
  if (!std::exchange(has_claim_, true))
    volumes.push_back(
        {{"name", "shared"}, {"persistentVolumeClaim", {{"claimName", claim_.name}}}});
  json mount{{"name", "shared"}, {"mountPath", target}, {"readOnly", read_only}};
  if (inside != ".") mount["subPath"] = inside.string();
  mounts.push_back(std::move(mount));
}

void PodFiles::add_memory(const std::string& target, std::optional<Bytes> size) {
  json medium{{"medium", "Memory"}};
  if (size) medium["sizeLimit"] = std::to_string(*size);
  volumes.push_back({{"name", "memory"}, {"emptyDir", std::move(medium)}});
  mounts.push_back({{"name", "memory"}, {"mountPath", target}});
}

void PodFiles::add_installed(const std::string& name, const std::string& file,
                             const std::string& target) {
  volumes.push_back({{"name", name}, {"emptyDir", json::object()}});
  mounts.push_back({{"name", name}, {"mountPath", target}, {"subPath", file}, {"readOnly", true}});
}

void PodFiles::add_empty(const std::string& name, const std::string& target, bool read_only) {
  volumes.push_back({{"name", name}, {"emptyDir", json::object()}});
  mounts.push_back({{"name", name}, {"mountPath", target}, {"readOnly", read_only}});
}

void PodFiles::add_secret(const std::string& name, const std::string& secret,
                          const std::string& key, const std::string& target) {
  volumes.push_back({{"name", name},
                     {"secret",
                      {{"secretName", secret},
                       {"items", json::array({json{{"key", key}, {"path", "document"}}})}}}});
  mounts.push_back({{"name", name}, {"mountPath", target}, {"readOnly", true}});
}

void PodFiles::add_node_cache(const NodeCache& cache, const std::string& target) {
  constexpr std::string_view claim = "pvc/", name = "node-cache";
  json volume{{"name", name}};
  if (cache.path.starts_with(claim))
    volume["persistentVolumeClaim"] = {{"claimName", cache.path.substr(claim.size())}};
  else
    volume["hostPath"] = {{"path", cache.path}, {"type", "DirectoryOrCreate"}};
  volumes.push_back(std::move(volume));
  mounts.push_back({{"name", name}, {"mountPath", target}});
}

void PodFiles::add(const KubernetesSettings& settings) {
  std::size_t number = 0;
  for (const auto& given : *settings.volumes) {
    auto [volume, mount] = volume_of(given, "given-" + std::to_string(number++));
    volumes.push_back(std::move(volume));
    if (!mount.is_null()) mounts.push_back(std::move(mount));
  }
  for (const auto& given : *settings.volume_mounts) mounts.push_back(given);
}

}  // namespace pipeline::orchestrators::kubernetes
