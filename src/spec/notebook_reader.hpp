/// @file
/// Steps that execute a Jupyter notebook: `notebook: train.ipynb` in place of a command.
#pragma once

#include <filesystem>

#include "settings/decode.hpp"
#include "spec/read_step.hpp"

namespace pipeline::spec {

/// Checks the notebook, and adds two parts of the step besides its command: the executed notebook
/// as an output, and the program that executes the notebook.
/// @param folder the folder that the notebook's path is relative to
void read_notebook(ReadStep& step, const std::filesystem::path& folder,
                   settings::Diagnostics& diagnostics);

/// Makes the command once the step's parameters are known: each parameter, input and output becomes
/// an argument.
void add_notebook_command(ReadStep& step);

}  // namespace pipeline::spec
