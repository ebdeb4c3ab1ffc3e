/// @file
/// What a pod sees of files elsewhere: its volumes, and where they are mounted. Pure.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include <pipeline/settings.hpp>

namespace pipeline::orchestrators {

/// A PersistentVolumeClaim through which pods see files of this machine.
struct SharedClaim {
  std::string name;            ///< Empty: there is none.
  std::filesystem::path root;  ///< Where this machine sees what the claim holds.
};

struct PodFiles {
  explicit PodFiles(const SharedClaim& claim = {}) : claim_(claim) {}

  /// A file or folder of this machine, which the nodes see under the same path, or pods through the
  /// claim. Throws InputError if that does not hold it.
  void add(const std::filesystem::path& source, bool is_folder, const std::string& target,
           bool read_only);
  void add_memory(const std::string& target, std::optional<Bytes> size);
  /// What a container that runs before the step's leaves in a folder of the pod's own, of this
  /// name. A file by itself: the image may have others in its folder.
  void add_left(const std::string& name, const std::string& file, const std::string& target);
  /// A folder of the pod's own.
  void add_empty(const std::string& name, const std::string& target, bool read_only);
  /// The folder `target` with one file in it, this key of a Secret.
  void add_secret(const std::string& name, const std::string& secret, const std::string& key,
                  const std::string& target);
  /// Those of the settings.
  void add(const KubernetesSettings& settings);

  nlohmann::json volumes = nlohmann::json::array(), mounts = nlohmann::json::array();

 private:
  void add_shared(const std::filesystem::path& source, const std::string& target, bool read_only);

  const SharedClaim& claim_;
  bool has_claim_ = false;  ///< Among `volumes`.
};

}  // namespace pipeline::orchestrators
