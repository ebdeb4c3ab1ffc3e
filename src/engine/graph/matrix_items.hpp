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

/// A value of an axis.
struct MatrixItem {
  nlohmann::json value;
  /// Set if the item is an entry of a folder: the entry's path.
  std::optional<std::filesystem::path> entry = {};
};

/// Returns the items of the list in a JSON output, or the visible entries of a folder, ordered by
/// their names with numbers by value. A map or list among the items becomes its JSON text, and
/// an integer of more than 64 bits a text with its digits. Steps wrote the items, so each is
/// checked like a value in the pipeline file. Throws InputError for an output without such items.
std::vector<MatrixItem> items_of(const OutputValue& items, const store::OutputRecord& output,
                                 store::ArtifactStore& artifacts);

}  // namespace pipeline::engine
