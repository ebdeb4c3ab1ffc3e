/// @file
/// The instances that a run makes of steps whose matrix has values of another step.
#pragma once

#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include <pipeline/spec.hpp>

#include "engine/graph/condition.hpp"
#include "engine/graph/matrix_items.hpp"
#include "model/instance.hpp"

namespace pipeline::engine {

/// The instances of all steps that share one matrix. Equal items give equal instances, so that a
/// run that is continued makes the same instances.
class MatrixExpansion {
 public:
  /// Reads the items. Throws InputError if there are none to read, or more than a matrix may have.
  /// @param steps       the steps that share the matrix; not empty
  /// @param find_output returns the outputs that the axes name; they must exist
  MatrixExpansion(std::vector<const StepSpec*> steps, const FindOutput& find_output,
                  store::ArtifactStore& artifacts);

  /// Returns the instances of one of the steps. Throws InputError if its command takes an item as a
  /// file, and the items are values.
  std::vector<StepSpec> instances_of(const StepSpec& step) const;
  /// Replaces these steps among the sources of the reader's gathered inputs by their instances.
  void replace_sources(StepSpec& reader) const;

 private:
  using Row = std::vector<const MatrixItem*>;  ///< A combination: an item of each axis.
  void combine();
  void make_names();
  StepSpec instance(const StepSpec& step, std::size_t k) const;

  std::vector<const StepSpec*> steps_;
  const MatrixSpec& matrix_;
  std::vector<std::vector<MatrixItem>> items_;  ///< Items of each axis.
  std::vector<Row> rows_;
  /// Names of the instances, keyed by step.
  std::unordered_map<std::string, std::vector<std::string>> names_;
};

}  // namespace pipeline::engine
