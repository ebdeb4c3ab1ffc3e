/// @file
/// Texts with holes: `--data ${inputs.data}`.
#pragma once

#include <cstddef>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <pipeline/spec.hpp>

namespace pipeline::spec {

/// Something wrong in a template, by its place in the text.
struct TemplateProblem {
  std::size_t offset, length;
  std::string code, message;
  std::vector<std::string> notes;
  std::string suggestion;
};

/// The names that a template may use.
struct TemplateNames {
  std::vector<std::string> inputs, outputs, parameters, environment;  ///< Sorted.
};

/// `${...}` becomes a reference, `$${` a literal `${`; every other `$` stays. Appends what is
/// malformed or refers to nothing.
Template parse_template(std::string_view text, const TemplateNames& names,
                        std::vector<TemplateProblem>& problems);

}  // namespace pipeline::spec
