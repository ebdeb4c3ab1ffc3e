/// @file
/// What the code that drives runs, or asks after their drivers, needs of the program around it.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "async/await.hpp"

namespace pipeline::detached {

/// Refers to the loop, which outlives it.
struct DriverContext {
  asio::io_context& loop;
  std::function<void(std::string_view)> note;  ///< Shows the user a line.
  std::string program;                         ///< Name of the command, for hints: `pipe`.

  template <class T>
  T await(async::Task<T> task) const {
    return async::await(loop, std::move(task));
  }
};

}  // namespace pipeline::detached
