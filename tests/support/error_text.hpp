/// @file
/// The error that a call throws, as text.
#pragma once

#include <string>
#include <utility>

#include "core/diagnostic.hpp"

namespace pipeline::test {

/// Returns the text of the InputError that `read` throws; `no error` if it throws none.
template <class Read>
std::string error_text(Read&& read) {
  try {
    std::forward<Read>(read)();
  } catch (const core::InputError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace pipeline::test
