"""Values as files, for steps that are functions: the codec of a type, and how each codec writes and reads.

A copy of this file travels with the code of each function step, beside pipe_step.py.
"""

import json
import os

if __package__:
    from .pipe_types import StepError, form_of, is_record, load_json, name_of, origin_of, records, save_json
else:
    from pipe_types import StepError, form_of, is_record, load_json, name_of, origin_of, records, save_json

_own_codecs = {}


class FileName:
    """``Annotated[Path, FileName("report.html")]``: the file name of an output."""

    def __init__(self, name):
        self.name = name

    def __repr__(self):
        return f"FileName({self.name!r})"


class Metrics:
    """``Annotated[dict[str, float], Metrics]``: the numbers of an output are metrics of the run."""


class Codec:
    """``Annotated[Model, Codec("pickle")]`` stores a value by the codec of this name."""

    def __init__(self, name):
        self.name = name

    def __repr__(self):
        return f"Codec({self.name!r})"


class Pickle:
    """``Pickle[Model]`` stores a value by pickle, which runs code of the file when it is loaded."""

    def __class_getitem__(cls, item):
        try:
            from typing import Annotated
        except ImportError:  # Python 3.8
            return item
        return Annotated[item, Codec("pickle")]


def codec(kind, extension):
    """Registers the class below as the codec of ``kind``, with ``save(value, path)`` and ``load(path)``."""

    def register(made):
        _own_codecs[kind] = (extension, made.save, made.load)
        return made

    return register


def _need(module, why):
    import importlib

    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise StepError(f"{why} takes the package {module.split('.')[0]!r}, which the step's environment lacks: "
                        f"add it to docker={{'requirements': [...]}}") from error


def _exact(value, numpy_class):
    if type(value) is not numpy_class and type(value).__name__ != "memmap":
        raise StepError(f"the value is a {name_of(type(value))}, of which an array file would lose a part")


def _save_npy(value, path, _):
    numpy = _need("numpy", "an array")
    value = numpy.asarray(value) if isinstance(value, numpy.generic) else value
    _exact(value, numpy.ndarray)
    if value.dtype.hasobject:
        raise StepError(f"an array of Python objects (dtype {value.dtype}) has no file format but pickle: "
                        "give it a dtype of numbers or texts, or annotate Pickle[...]")
    numpy.save(path, value, allow_pickle=False)


def _load_npy(path, _):
    numpy = _need("numpy", "an array")
    # A large array is mapped: pages are read when they are used, and writes stay in this process.
    return numpy.load(path, mmap_mode="c" if os.path.getsize(path) > 1 << 20 else None, allow_pickle=False)


def _save_npz(value, path, _):
    numpy = _need("numpy", "arrays")
    for name, array in value.items():
        if not isinstance(name, str) or name == "file":
            raise StepError(f"{name!r} cannot name an array of an .npz file")
        _exact(array, numpy.ndarray)
        if array.dtype.hasobject:
            raise StepError(f"the array {name!r} holds Python objects")
    numpy.savez(path, **value)


def _load_npz(path, _):
    with _need("numpy", "arrays").load(path, allow_pickle=False) as arrays:
        return {name: arrays[name] for name in arrays.files}


def _save_pandas(value, path, _):
    _need("pyarrow", "a DataFrame (as Parquet)")
    value.to_parquet(path, engine="pyarrow")


def _load_pandas(path, _):
    # A path would become a Python file, which threads of pyarrow may give up last: one that does so while
    # the interpreter ends aborts the process, "terminate called without an active exception" (apache/arrow#34314).
    file = _need("pyarrow", "a DataFrame (as Parquet)").OSFile(os.fspath(path))
    return _need("pandas", "a DataFrame").read_parquet(file, engine="pyarrow")


def _save_series(value, path, _):
    if not isinstance(value.name, str):
        raise StepError(f"a Series is stored by its name, and this one is called {value.name!r}: name it, series.rename('x')")
    _save_pandas(value.to_frame(), path, _)


def _save_arrow(value, path, _):
    _need("pyarrow.parquet", "a table (as Parquet)").write_table(value, path)


def _save_safetensors(value, path, _):
    """Writes the format of safetensors, whose package need not be there: a header of JSON, then the bytes."""
    torch = _need("torch", "a tensor")
    tensors = {"tensor": value} if isinstance(value, torch.Tensor) else value
    header, blobs, at = {}, [], 0
    for name, tensor in tensors.items():
        if not isinstance(name, str) or not isinstance(tensor, torch.Tensor):
            raise StepError(f"{name!r} is a {name_of(type(tensor))}, and a state dict has tensors by name")
        tensor = tensor.detach().cpu().contiguous()
        if str(tensor.dtype) not in _DTYPES:
            raise StepError(f"safetensors has no {tensor.dtype}")
        blob = tensor.reshape(-1).view(torch.uint8).numpy().data
        header[name] = {"dtype": _DTYPES[str(tensor.dtype)], "shape": list(tensor.shape), "data_offsets": [at, at + blob.nbytes]}
        blobs.append(blob)
        at += blob.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for blob in blobs:
            file.write(blob)


_DTYPES = {"torch.float64": "F64", "torch.float32": "F32", "torch.float16": "F16", "torch.bfloat16": "BF16", "torch.int64": "I64",
           "torch.int32": "I32", "torch.int16": "I16", "torch.int8": "I8", "torch.uint8": "U8", "torch.bool": "BOOL"}


def _load_safetensors(path, annotation):
    torch = _need("torch", "a tensor")
    with open(path, "rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        start = file.tell()
    header.pop("__metadata__", None)
    dtypes = {short: getattr(torch, long.split(".")[1]) for long, short in _DTYPES.items()}
    size = os.path.getsize(path) - start
    tensors = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        if not 0 <= begin <= end <= size:
            raise StepError(f"{path} is damaged: the tensor {name!r} lies outside of the file")
        blob = torch.from_file(path, shared=False, size=start + size, dtype=torch.uint8)[start + begin:start + end] if end > begin else torch.empty(0, dtype=torch.uint8)
        if (start + begin) % 8:
            blob = blob.clone()
        tensors[name] = blob.view(dtypes[entry["dtype"]]).reshape(entry["shape"])
    return tensors["tensor"] if list(tensors) == ["tensor"] and origin_of(annotation)[0] is not dict else tensors


def _load_skops(path, _):
    return _need("skops.io", "a model (by skops)").load(path)  # refuses types that skops does not know to be safe


def _save_figure(value, path, _):
    if path.endswith(".svg"):
        matplotlib = _need("matplotlib", "a figure")
        with matplotlib.rc_context({"svg.hashsalt": "pipe"}):
            value.savefig(path, metadata={"Date": None})
    else:
        value.savefig(path)


def _refuse_figure(path, _):
    raise StepError("a figure is stored as a picture, and cannot be loaded as a figure: annotate the argument as Path")


def _save_path(value, path, _):
    import shutil

    source = os.fspath(value)
    if not os.path.lexists(source):
        raise StepError(f"the function returned the path {source!r}, where there is nothing")
    if os.path.realpath(source) == os.path.realpath(path):
        return
    if os.path.realpath(path).startswith(os.path.realpath(source) + os.sep):
        raise StepError(f"the folder {source!r} holds the output itself")
    if os.path.isdir(source):
        shutil.copytree(source, path)
    else:
        shutil.copyfile(source, path)


def _load_path(path, _):
    from pathlib import Path

    return Path(path)


def _save_bytes(value, path, _):
    if not isinstance(value, (bytes, bytearray, memoryview)):
        raise StepError(f"the value is a {name_of(type(value))}, not bytes")
    with open(path, "wb") as file:
        file.write(value)


def _load_bytes(path, _):
    with open(path, "rb") as file:
        return file.read()


def _save_pickle(value, path, _):
    import pickle

    with open(path, "wb") as file:
        pickle.dump(value, file, protocol=5)


def _load_pickle(path, _):
    import pickle

    with open(path, "rb") as file:
        return pickle.load(file)


def _members(annotation, value=None, path=None):
    """Returns the annotation of each entry of a folder: fields of a dataclass, items of a list, values of a dict."""
    origin, arguments = origin_of(annotation)
    if origin in (list, tuple):
        count = len(value) if value is not None else len(os.listdir(path))
        return {str(i): arguments[0] for i in range(count)}
    if origin is dict:
        names = [*value] if value is not None else sorted(entry.split(".")[0] for entry in os.listdir(path))
        return {name: arguments[1] for name in names}
    return records().fields_of(origin)


def _save_folder(value, path, annotation):
    os.mkdir(path)
    is_map = isinstance(value, dict)
    for name, kind in _members(annotation, value).items():
        if not isinstance(name, str) or not name.replace("_", "").replace("-", "").isalnum():
            raise StepError(f"{name!r} cannot name a file of the result's folder")
        member = value[name] if is_map else value[int(name)] if name.isdigit() else getattr(value, name)
        used = codec_of(kind)
        save(member, os.path.join(path, name + extension_of(used, kind)), used, kind)


def _load_folder(path, annotation):
    origin, _ = origin_of(annotation)
    members = {}
    for name, kind in _members(annotation, path=path).items():
        used = codec_of(kind)
        members[name] = load(os.path.join(path, name + extension_of(used, kind)), used, kind)
    return members if origin is dict else [*members.values()] if origin is list else tuple(members.values()) if origin is tuple else origin(**members)


CODECS = {
    "json": (".json", save_json, load_json),
    "npy": (".npy", _save_npy, _load_npy),
    "npz": (".npz", _save_npz, _load_npz),
    "pandas": (".parquet", _save_pandas, _load_pandas),
    "series": (".parquet", _save_series, lambda path, _: _load_pandas(path, _).iloc[:, 0]),
    "polars": (".parquet", lambda value, path, _: value.write_parquet(path), lambda path, _: _need("polars", "a DataFrame").read_parquet(path)),
    "arrow": (".parquet", _save_arrow, lambda path, _: _need("pyarrow.parquet", "a table").read_table(path)),
    "sparse": (".npz", lambda value, path, _: _need("scipy.sparse", "a sparse matrix").save_npz(path, value),
               lambda path, _: _need("scipy.sparse", "a sparse matrix").load_npz(path)),
    "safetensors": (".safetensors", _save_safetensors, _load_safetensors),
    "joblib": (".joblib", lambda value, path, _: _need("joblib", "a model").dump(value, path), lambda path, _: _need("joblib", "a model").load(path)),
    "skops": (".skops", lambda value, path, _: _need("skops.io", "a model (by skops)").dump(value, path), _load_skops),
    "png": (".png", _save_figure, _refuse_figure),
    "svg": (".svg", _save_figure, _refuse_figure),
    "image": (".png", lambda value, path, _: value.save(path), lambda path, _: _need("PIL.Image", "a picture").open(path)),
    "path": ("", _save_path, _load_path),
    "bytes": (".bin", _save_bytes, _load_bytes),
    "pickle": (".pickle", _save_pickle, _load_pickle),
    "folder": ("", _save_folder, _load_folder),
}


def _own(annotation):
    origin = origin_of(annotation)[0]
    for kind in getattr(origin, "__mro__", [origin]):
        if kind in _own_codecs:
            return _own_codecs[kind]
    raise StepError(f"no codec is registered for {name_of(annotation)}")


def extension_of(name, annotation=None):
    return _own(annotation)[0] if name == "own" else CODECS[name][0]


def save(value, path, name, annotation):
    if name == "own":
        _own(annotation)[1](value, path)
    else:
        CODECS[name][1](value, path, annotation)


def load(path, name, annotation):
    return _own(annotation)[2](path) if name == "own" else CODECS[name][2](path, annotation)


# The last part of a type's name, by package: where it is stored otherwise than as JSON.
KINDS = {
    "numpy": {"ndarray": "npy"}, "pandas": {"DataFrame": "pandas", "Series": "series"}, "polars": {"DataFrame": "polars"}, "pyarrow": {"Table": "arrow"},
    "scipy": {"spmatrix": "sparse", "sparray": "sparse", "_spbase": "sparse"}, "torch": {"Tensor": "safetensors"}, "sklearn": {"BaseEstimator": "joblib"},
    "matplotlib": {"Figure": "png"}, "PIL": {"Image": "image"}, "pathlib": {"Path": "path", "PurePath": "path"}, "builtins": {"bytes": "bytes", "bytearray": "bytes"},
}


def codec_of(annotation, inside=()):
    """Returns the name of the codec for values of a type; raises StepError with advice for one that has none."""
    for extra in getattr(annotation, "__metadata__", ()):
        if isinstance(extra, Codec):
            if extra.name not in CODECS:
                raise StepError(f"there is no codec {extra.name!r}: there are {', '.join(sorted(CODECS))}")
            return extra.name
    origin, arguments = origin_of(annotation)
    for kind in getattr(origin, "__mro__", [origin]):
        if kind in _own_codecs:
            return "own"
        package = (getattr(kind, "__module__", "") or "").split(".")[0]
        if found := KINDS.get(package, {}).get(getattr(kind, "__name__", "")):
            return found
    if origin is dict and len(arguments) == 2:
        inner = codec_of(arguments[1], inside)
        return {"npy": "npz", "safetensors": "safetensors", "json": "json"}.get(inner, "folder")
    if origin in (list, tuple) and arguments and arguments[-1] is not Ellipsis and len(arguments) == 1:
        return "json" if codec_of(arguments[0], inside) == "json" else "folder"
    if origin in inside:  # a type that contains itself, as a tree does
        return "json"
    if is_record(origin) or hasattr(origin, "__total__"):
        return "json" if all(codec_of(kind, (*inside, origin)) == "json" for kind in records().fields_of(origin).values()) else "folder"
    for part in arguments:
        if part is not Ellipsis and part is not type(None) and not isinstance(part, (str, int, list)) and codec_of(part, inside) != "json":
            raise StepError(f"{name_of(annotation)} has no file format: only a type by itself, a list, a dict by name or a dataclass of {name_of(part)} has")
    _check_json(origin, annotation)
    return "json"


_BETTER = {
    "timedelta": "float, and return its total_seconds()", "object": "Any, or the exact type",
    "Iterator": "list[...], and return a list", "Generator": "list[...], and return a list", "AsyncIterator": "list[...], and return a list",
    "range": "list[int]", "float64": "float", "float32": "float", "int64": "int", "int32": "int", "bool_": "bool", "str_": "str", "Timestamp": "datetime.datetime",
    "LazyFrame": "polars.DataFrame, and return what collect() gives",
}


def _check_json(origin, annotation):
    """Raises where a type has no form as JSON, with the way out."""
    if form_of(annotation)[0]:
        return
    better = _BETTER.get(getattr(origin, "__name__", ""))
    if better and getattr(origin, "__module__", "").split(".")[0] in ("builtins", "collections", "datetime", "numpy", "pandas", "polars"):
        raise StepError(f"there is no file format for {name_of(annotation)}: annotate {better}")
    if not isinstance(origin, type) or origin.__module__ == "builtins":
        raise StepError(f"there is no file format for {name_of(annotation)}")
    hint = f"make it a dataclass, register a codec (@pl.codec({name_of(origin)}, '.ext')), or ask for pickle: pl.Pickle[{name_of(origin)}]"
    if any(each.__module__.startswith("torch.nn") for each in origin.__mro__):
        hint = "annotate dict[str, torch.Tensor], and return model.state_dict()"
    raise StepError(f"there is no file format for {origin.__module__}.{name_of(origin)}: {hint}")
