/// @file
/// The volumes of a pod and their mounts. Pure.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include <pipeline/settings.hpp>

namespace pipeline::orchestrators::kubernetes {

/// A PersistentVolumeClaim through which pods see files of this machine.
struct SharedClaim {
  std::string name;            ///< Empty: there is none.
  std::filesystem::path root;  ///< The path at which this machine sees the claim's content.
};

/// The place in which the pods of a node share their downloads (stager/node_cache.hpp).
struct NodeCache {
  std::string path;    ///< A folder of each node, or `pvc/CLAIM`; empty: there is no cache.
  std::string budget;  ///< Its maximum size in bytes.
};

/// Collects the volumes of a pod, and where the step's container mounts them.
struct PodFiles {
  explicit PodFiles(SharedClaim claim = {}) : claim_(std::move(claim)) {}

  /// Adds a file or folder of this machine, which the nodes see under the same path or pods through
  /// the claim. Throws InputError if the claim does not contain it.
  void add(const std::filesystem::path& source, bool is_folder, const std::string& target,
           bool read_only);
  /// Adds a writable folder inside `whole`, a folder of this machine.
  /// @param part path of that folder in `whole`, in which Kubernetes fills in variables of the
  /// container
  void add_part(const std::filesystem::path& whole, const std::string& part,
                const std::string& target);
  /// Adds an empty volume in memory.
  void add_memory(const std::string& target, std::optional<Bytes> size);
  /// Adds a file that an init container installs in a volume of the pod called `name`. The file is
  /// mounted by itself, because the image may have other files in the target's folder.
  void add_installed(const std::string& name, const std::string& file, const std::string& target);
  /// Adds an empty volume of the pod.
  void add_empty(const std::string& name, const std::string& target, bool read_only);
  /// Adds the folder `target` with one file, this key of a Secret.
  void add_secret(const std::string& name, const std::string& secret, const std::string& key,
                  const std::string& target);
  /// Adds a folder of the node that is made if it is missing, or a claim.
  void add_node_cache(const NodeCache& cache, const std::string& target);
  /// Adds the volumes of the settings.
  void add(const KubernetesSettings& settings);

  nlohmann::json volumes = nlohmann::json::array(), mounts = nlohmann::json::array();

 private:
  void add_shared(const std::filesystem::path& source, const std::string& target, bool read_only);

  SharedClaim claim_;
  bool has_claim_ = false;  ///< `volumes` contains the claim.
};

}  // namespace pipeline::orchestrators::kubernetes
