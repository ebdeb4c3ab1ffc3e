/// @file
/// Conditions on runs: `params.c > 1 and metrics.accuracy > 0.9`.
#pragma once

#include <optional>
#include <string>

#include "core/expression.hpp"
#include "report/run_values.hpp"

namespace pipeline::report {

/// A condition in the language of `when:` (core/expression.hpp). Names need no `${}`, which would
/// need quotes in a shell.
class RunFilter {
 public:
  /// Accepts every run if `text` is empty. Throws InputError for a text that is not an expression.
  explicit RunFilter(const std::string& text);
  /// Returns whether the condition is true; a comparison with a value that the run lacks, or has of
  /// another type, is false. Throws InputError for a name that no run can have.
  bool accepts(RunValues& values);
  /// Throws InputError if types did not match in some run, and no run could decide the condition.
  void check() const;
  bool accepts_all() const { return text_.empty(); }

 private:
  std::string text_;
  core::Expression expression_;
  bool has_decided_ = false;
  std::optional<core::ExpressionError> mismatch_;
};

/// Returns what filters and orders compare: the value, but a number for a metric that is stored as
/// the text `inf` or `-inf`, and null for one that is stored as `nan`.
nlohmann::json comparable_value(RunValues& values, const std::string& name);

/// Puts `${}` around names such as `metrics.accuracy` and `status`, except in quoted strings and
/// where `${}` is written already.
std::string with_references(const std::string& text);

}  // namespace pipeline::report
