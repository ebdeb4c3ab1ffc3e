#include "async/system_failure.hpp"

#include <cerrno>
#include <filesystem>
#include <new>
#include <system_error>

#include <boost/system/system_error.hpp>

#include "core/error.hpp"

namespace pipeline::async {

void rethrow_as_environment_error() {
  try {
    throw;
  } catch (const std::filesystem::filesystem_error& error) {
    throw core::EnvironmentError(error.what());
  } catch (const std::system_error& error) {
    throw core::system_error("cannot continue", error.code().value());
  } catch (const boost::system::system_error& error) {
    if (error.code().category() == boost::system::system_category())
      throw core::system_error("cannot continue", error.code().value());
    throw core::EnvironmentError(error.what());
  } catch (const std::bad_alloc&) {
    throw core::system_error("out of memory", ENOMEM);
  }
}

}  // namespace pipeline::async
