#include "orchestrators/processes/python_facts.hpp"

#include "core/error.hpp"
#include "core/text.hpp"
#include "python_packages/requirements.hpp"

namespace pipeline::orchestrators::processes {
namespace {

/// Prints the facts that templates/lock/resolve.py finds, without its imports, which are slow.
constexpr auto facts_script = R"(import os, sys
kind = {'cpython': 'cp', 'pypy': 'pp'}.get(sys.implementation.name, sys.implementation.name)
machine = os.uname().machine
try:
    library = 'manylinux_' + os.confstr('CS_GNU_LIBC_VERSION').split()[1].replace('.', '_')
except (ValueError, OSError, AttributeError, IndexError):
    library = 'linux'
print('%d.%d.%d' % sys.version_info[:3], '%s%d%d' % ((kind,) + sys.version_info[:2]), library + '_' + machine)
)";

}  // namespace

PythonFacts read_python_facts(const std::filesystem::path& python) {
  const auto printed =
      python_packages::output_of({python.string(), "-I", "-S", "-c", facts_script}, {});
  const auto words = core::split(core::trimmed(printed, " \n"), ' ');
  if (words.size() != 3)
    throw core::EnvironmentError(python.string() + " does not say which Python it is: " + printed);
  return {std::string(words[0]), std::string(words[1]), std::string(words[2])};
}

}  // namespace pipeline::orchestrators::processes
