from a import (b,
 c)
import_module(".x", package="p")
x = r"""
import y"""
