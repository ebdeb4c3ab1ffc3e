/// @file
/// Artifacts by name: those of the workspace's remote store, or else of its state folder.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "driver/workspace.hpp"
#include "remote_cache/remote_names.hpp"
#include "remote_cache/run_outputs.hpp"

namespace pipeline::driver {

class PublishedNames {
 public:
  /// Keeps references to both arguments.
  PublishedNames(Workspace& workspace, store::RunStore& store);

  /// Returns the record of a name, without versions if nothing has the name.
  store::PublishedName record_of(const std::string& name);
  /// Returns the record that `NAME` or `NAME@VERSION` names, and the number of the version; 0: the
  /// current one. Throws InputError if there is none.
  std::pair<store::PublishedName, unsigned> find(const std::string& reference);

  /// Makes an output the newest version of the name, and the current one. Throws InputError for a
  /// bad name.
  void publish(const std::string& name, const store::StepRecord& step,
               const store::OutputRecord& output);
  /// Makes the version the current one.
  void promote(const std::string& name, unsigned version);
  /// Makes the version current again that was current before.
  void demote(const std::string& name);
  /// Returns the access to outputs of runs, by which their content is found or downloaded.
  remote_cache::RunOutputs& outputs() { return outputs_; }

 private:
  /// Returns all names, for suggestions.
  std::vector<std::string> all();
  /// Applies the edit to the record of the name.
  void change(const std::string& name, const remote_cache::RemoteNames::Edit& edit);

  Workspace& workspace_;
  store::Published& local_;
  remote_cache::RunOutputs outputs_;
  std::optional<blobs::RemoteArtifacts> store_;      ///< Empty without a remote store.
  std::optional<remote_cache::RemoteNames> remote_;  ///< Empty without a remote store.
};

}  // namespace pipeline::driver
