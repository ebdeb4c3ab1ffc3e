/// @file
/// Finds the steps that produced an artifact, and those that consumed it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/digest.hpp"
#include "store/cache_entries.hpp"
#include "store/records.hpp"

namespace pipeline::store {

class Database;
class KeyValues;
class Runs;

/// An artifact of a gathered input.
struct GatheredPiece {
  core::Digest artifact;
  std::string step;  ///< The step that produced it; empty if not recorded.
};

/// Returns the pieces as Lineage::record_gather() takes them: the text takes little memory.
std::string gathered_text(const std::vector<GatheredPiece>& pieces);

/// The artifacts that a step's matrix takes its values from, by axis.
using MatrixInputs = std::vector<std::pair<std::string, core::Digest>>;

/// An input of a step, with the digest that stands for the input in the step's key, or the artifact
/// that the step's matrix takes values from.
struct InputDigest {
  std::string name;
  core::Digest digest;
  std::string producer = {};            ///< As in KeyPart.
  std::optional<DataOrigin> data = {};  ///< For data from outside; the digest is then not set.
};
using InputDigests = std::vector<InputDigest>;

class Lineage {
 public:
  /// Keeps references to all arguments.
  Lineage(Database& database, Runs& runs, CacheEntries& cache, KeyValues& key_values)
      : database_(database), runs_(runs), cache_(cache), key_values_(key_values) {}

  /// Returns the newest succeeded step that produced an artifact with this digest.
  /// @param latest_end the time by which that step had ended, such as the start of a step that
  /// consumed the artifact. As the clocks of machines differ, any step is returned if none had.
  /// @param step the name of the step that is preferred
  /// @param run the run that is preferred among those with such a step
  std::optional<StepRecord> producer(const core::Digest& artifact,
                                     std::optional<WallTime> latest_end = std::nullopt,
                                     const std::string& step = {}, const std::string& run = {});
  /// Returns the succeeded steps that took the content as an input, as data from outside, or as a
  /// part of a gathered input or of a folder, the oldest first.
  std::vector<StepRecord> consumers(const core::Digest& artifact);

  /// Records the artifacts of a gathered input.
  /// @param input the digest that stands for the input in keys
  /// @param pieces as gathered_text() returns them
  void record_gather(const core::Digest& input, std::string_view pieces);
  /// Returns the artifacts of a gathered input, in order; none if the input is not known.
  std::vector<GatheredPiece> gathered(const core::Digest& input);
  /// Records which artifacts the matrix of the step with this key takes values from.
  void record_matrix_inputs(const std::string& key, const MatrixInputs& inputs);
  MatrixInputs matrix_inputs(const std::string& key);
  /// Removes records of record_gather() and record_matrix_inputs() for removed cache entries.
  void remove_unused();

  /// Returns the inputs of each of the run's steps that has any, by the step's key.
  std::unordered_map<std::string, InputDigests> inputs_of_run(const std::string& run);
  InputDigests inputs_of_step(const std::string& key);
  /// Returns the digest of the newest data that a step took from this path, address or name.
  std::optional<core::Digest> data_from(const std::string& source);

 private:
  Database& database_;
  Runs& runs_;
  CacheEntries& cache_;
  KeyValues& key_values_;
};

}  // namespace pipeline::store
