/// @file
/// Conditions on runs: `params.c > 1 and metrics.accuracy > 0.9`.
#pragma once

#include <string>

#include "core/expression.hpp"
#include "report/run_values.hpp"

namespace pipeline::report {

/// The language of `when:` (core/expression.hpp); a value may stand without `${}`, because a shell
/// would need quotes for them.
class RunFilter {
 public:
  /// An empty text accepts every run. Throws InputError for a text that is no expression.
  explicit RunFilter(const std::string& text);
  /// A comparison with a value that the run does not have does not hold. Throws InputError for a
  /// value of a wrong type and for a name that no run can have.
  bool accepts(RunValues& values) const;
  bool accepts_all() const { return text_.empty(); }

 private:
  std::string text_;
  core::Expression expression_;
};

/// Puts `${}` around names that stand outside of texts: `run.id`, `metrics.accuracy`, `status`.
std::string with_references(const std::string& text);

}  // namespace pipeline::report
