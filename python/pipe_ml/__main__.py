"""``python -m pipe_ml`` is ``pipe``."""

import sys

from . import _program
from ._errors import PipelineError

try:
    _program.execute(sys.argv[1:])
except PipelineError as error:
    sys.exit(str(error))
