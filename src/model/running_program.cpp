#include "model/running_program.hpp"

#include <errno.h>
#include <link.h>

#include <array>
#include <charconv>
#include <cstdint>
#include <utility>

#include "core/error.hpp"

namespace pipeline::model {

Program running_program() {
  struct Found {
    Program program;
    bool is_first = true;
  } found;
  std::error_code error;
  found.program.executable = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error)
    throw core::system_error("cannot tell which program this is: /proc/self/exe", error.value());
  ::dl_iterate_phdr(
      [](dl_phdr_info* object, std::size_t, void* data) {
        auto& [program, is_first] = *static_cast<Found*>(data);
        // The first entry is the program itself; its headers name the loader.
        if (std::exchange(is_first, false)) {
          for (int i = 0; i < object->dlpi_phnum; ++i)
            if (const auto& header = object->dlpi_phdr[i]; header.p_type == PT_INTERP)
              program.loader = reinterpret_cast<const char*>(object->dlpi_addr + header.p_vaddr);
          return 0;
        }
        const std::filesystem::path path = object->dlpi_name;
        // The entry without a slash is the kernel's own (linux-vdso.so.1). The loader is among the
        // entries, under the name by which the libraries depend on it.
        if (path.is_absolute() && path.filename() != program.loader.filename())
          program.libraries.push_back(path);
        return 0;
      },
      &found);
  // In an image, or carried by a package, the program is started through its loader, which the
  // kernel then reports as the executable; the loader itself reports the program's path.
  auto& program = found.program;
  if (!program.loader.empty() && program.executable.filename() == program.loader.filename()) {
    program.loader = program.executable;  // The system's own may be of another C library.
    program.executable = std::filesystem::absolute(program_invocation_name);
  }
  return std::move(program);
}

std::string offset_in_program(void (*function)()) {
  struct Sought {
    std::uintptr_t address;
    std::string offset = {};
  } sought{reinterpret_cast<std::uintptr_t>(function)};
  ::dl_iterate_phdr(
      [](dl_phdr_info* object, std::size_t, void* data) {
        auto& [address, offset] = *static_cast<Sought*>(data);
        for (int i = 0; i < object->dlpi_phnum; ++i) {
          const auto& header = object->dlpi_phdr[i];
          const auto begin = object->dlpi_addr + header.p_vaddr;
          if (header.p_type != PT_LOAD || address < begin || address - begin >= header.p_memsz)
            continue;
          std::array<char, 2 * sizeof address> digits;
          const auto end = std::to_chars(digits.data(), digits.data() + digits.size(),
                                         address - object->dlpi_addr, 16);
          offset.assign(digits.data(), end.ptr);
          return 1;
        }
        return 0;
      },
      &sought);
  return std::move(sought.offset);
}

}  // namespace pipeline::model
