from typing import Any, Callable, Dict, Protocol, Tuple, Type, TypeVar

from typing_extensions import Annotated

T = TypeVar("T")

class FileName:
    """``Annotated[Path, FileName("report.html")]``: the file name of an output."""

    name: str
    def __init__(self, name: str) -> None: ...

class Metrics:
    """``Annotated[dict[str, float], Metrics]``: the numbers of an output are metrics of the run."""

class Codec:
    """``Annotated[Model, Codec("pickle")]`` stores a value by the codec of this name."""

    name: str
    def __init__(self, name: str) -> None: ...

# ``Pickle[Model]`` stores a value by pickle, which runs code of the file when it is loaded.
Pickle = Annotated[T, Codec("pickle")]

class _CodecClass(Protocol):
    @staticmethod
    def save(value: Any, path: str, /) -> None: ...
    @staticmethod
    def load(path: str, /) -> Any: ...

C = TypeVar("C", bound=Type[_CodecClass])

def codec(kind: type, extension: str) -> Callable[[C], C]:
    """Registers the class below as the codec of ``kind``, with ``save(value, path)`` and ``load(path)``."""

CODECS: Dict[str, Tuple[str, Callable[..., None], Callable[..., Any]]]

def extension_of(name: str, annotation: Any = ...) -> str: ...
def save(value: Any, path: str, name: str, annotation: Any) -> None: ...
def load(path: str, name: str, annotation: Any) -> Any: ...
def codec_of(annotation: Any, inside: Tuple[Any, ...] = ...) -> str: ...
