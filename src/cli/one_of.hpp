/// @file
/// The check of an option that takes one of some words.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "core/joined.hpp"

namespace pipeline::cli {

/// Accepts one of the words. Completion finds them in the validator's name.
inline CLI::Validator one_of(const std::vector<std::string>& words) {
  return CLI::IsMember(words)
      .name(core::joined(words, " "))
      .operation([words](const std::string& given) {
        const bool is_known = std::ranges::find(words, given) != words.end();
        return is_known ? std::string()
                        : "must be one of " + core::joined(words, ", ") + ", not '" + given + "'";
      });
}

}  // namespace pipeline::cli
