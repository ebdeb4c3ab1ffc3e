/// @file
/// Inputs that come from outside of the pipeline: files and folders of the user's, and downloads.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <pipeline/spec.hpp>

#include "store/run_store.hpp"
#include "store/user_data.hpp"

namespace pipeline::engine {

/// The content of the data that a run uses. Each path is read once, because all steps of a run have
/// to see the same content.
class DataInputs {
 public:
  explicit DataInputs(store::StatIndex& stats) : stats_(stats) {}

  /// Throws EnvironmentError for data that cannot be read.
  const store::UserData& of(const std::filesystem::path& path);
  /// Returns the parts of a step's key for this input, which has data.
  std::vector<store::KeyPart> parts(const InputSpec& input);

 private:
  store::StatIndex& stats_;
  std::map<std::filesystem::path, store::UserData> read_;
};

/// Returns the file name that a step sees: that of the path or URL, if it is a safe one.
std::string file_name_of(const DataSpec& data);

/// Returns the name of the data for messages: its path, or its URL without the query, which may
/// hold a signature.
std::string name_of(const DataSpec& data);

}  // namespace pipeline::engine
