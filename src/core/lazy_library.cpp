#include "core/lazy_library.hpp"

#include <string>
#include <string_view>

#include <dlfcn.h>

#include "core/error.hpp"

namespace pipeline::core {

namespace {

/// Derives a Debian package's name from a library's soname: libcurl.so.4 -> libcurl4,
/// libgit2.so.1.5 -> libgit2-1.5 (Debian Policy 8.1).
std::string debian_package(std::string_view soname) {
  const auto dot = soname.find(".so.");
  if (dot == std::string_view::npos) return std::string(soname.substr(0, soname.find(".so")));
  const auto name = soname.substr(0, dot), version = soname.substr(dot + 4);
  const bool ends_with_digit = !name.empty() && name.back() >= '0' && name.back() <= '9';
  return std::string(name) + (ends_with_digit ? "-" : "") + std::string(version);
}

std::string last_loader_error() {
  const char* text = ::dlerror();
  return text ? text : "unknown error of the dynamic loader";
}

}  // namespace

void* load_symbol(const char* soname, const char* symbol) {
  // dlopen counts references and returns the same handle again; the library stays loaded until the
  // program ends.
  void* library = ::dlopen(soname, RTLD_LAZY | RTLD_LOCAL);
  if (!library) {
    throw EnvironmentError(
        std::string("cannot load the library ") + soname + ": " + last_loader_error(),
        {"install it: apt-get install " + debian_package(soname)});
  }
  void* address = ::dlsym(library, symbol);
  if (!address) {
    throw EnvironmentError(
        std::string("the library ") + soname + " has no function " + symbol + ": " +
            last_loader_error(),
        {"install the distribution's own version of it: apt-get install --reinstall " +
         debian_package(soname)});
  }
  return address;
}

}  // namespace pipeline::core
