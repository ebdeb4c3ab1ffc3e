/// @file
/// Parses texts with placeholders, such as `--data ${inputs.data}`.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <pipeline/spec.hpp>

namespace pipeline::spec {

/// An error in a template; offset and length are in bytes of the text.
struct TemplateProblem {
  std::size_t offset, length;
  std::string code, message;
  std::vector<std::string> notes;
  std::string suggestion;
};

/// The names that a template may refer to.
struct TemplateNames {
  std::vector<std::string> inputs, outputs, parameters, environment;  ///< Sorted.
  /// Values of the parameters, for `${params.X.MEMBER}`; may be null.
  const std::map<std::string, Json>* values = nullptr;
  bool has_nodes = false;  ///< Whether `${node.rank}` and `${node.count}` are allowed.
};

/// Parses the text: `${...}` becomes a reference, `$${` a literal `${`; every other `$` stays.
/// Appends malformed and unknown references to `problems`.
Template parse_template(std::string_view text, const TemplateNames& names,
                        std::vector<TemplateProblem>& problems);

}  // namespace pipeline::spec
