/// @file
/// The items that an output gives to the matrix of another step.
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include <nlohmann/json.hpp>
#include <pipeline/spec.hpp>

#include "store/artifact_store.hpp"
#include "store/run_store.hpp"

namespace pipeline::engine {

/// One value of an axis.
struct MatrixItem {
  nlohmann::json value;
  /// For an entry of a folder: where it lies.
  std::optional<std::filesystem::path> entry = {};
};

/// Returns the items of the list that a JSON output has, or the entries of a folder
/// by their names, numbers in them by their value; without hidden ones. A map or list among the
/// items becomes its JSON, in a text. Steps wrote them: each is checked as a value in the pipeline
/// file is. Throws InputError for an output that has no such items.
std::vector<MatrixItem> items_of(const OutputValue& items, const store::OutputRecord& output,
                                 store::ArtifactStore& artifacts);

}  // namespace pipeline::engine
