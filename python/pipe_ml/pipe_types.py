"""Values of annotated types as JSON and back, for steps that are functions.

A copy of this file travels with the code of each function step, beside pipe_step.py: any Python from 3.8, no
other package, and ``typing`` only where the step's own code has loaded it. Each step compiles it anew, so it
has numbers, texts, lists and maps alone; pipe_records.py has the other types, and is loaded by steps with one.
"""

import json


class StepError(Exception):
    """A value that a step cannot take or store; its message says what to do."""


MAX_DEPTH = 200
ANY = ("typing.Any", "Any", "~T")
LISTS = ("list", "tuple", "set", "frozenset", "Sequence", "Iterable", "Collection")
MAPS = ("dict", "Mapping", "MutableMapping")
TIMES = ("date", "datetime", "time")
TEXTS = ("Decimal", "UUID")


def name_of(annotation):
    if getattr(annotation, "__args__", None) or not hasattr(annotation, "__qualname__"):
        return str(annotation).replace("typing.", "").replace("__main__.", "").replace("NoneType", "None")
    return "None" if annotation is type(None) else annotation.__qualname__


def a(name):
    return ("an " if name[:1].lower() in "aeiou" else "a ") + name


def origin_of(annotation):
    """Returns (origin, arguments) of a type, without Annotated, NewType and the like."""
    while True:
        if getattr(annotation, "__metadata__", None) is not None:
            annotation = annotation.__origin__
        elif hasattr(annotation, "__supertype__"):
            annotation = annotation.__supertype__
        elif type(annotation).__name__ == "TypeAliasType":
            annotation = annotation.__value__
        else:
            break
    return getattr(annotation, "__origin__", None) or annotation, tuple(getattr(annotation, "__args__", ()) or ())


def is_record(kind):
    return hasattr(kind, "__dataclass_fields__") or (isinstance(kind, type) and issubclass(kind, tuple) and hasattr(kind, "_fields"))


sources = {}  # the source of each module that has functions which are steps, by name


def records():
    """Returns the module of the types that not each step has."""
    if __package__:
        from . import pipe_records
    else:
        import pipe_records
    return pipe_records


def annotations_in(made):
    """Returns the annotations of a function or class; texts where Python finds not all their names."""
    try:
        return made.__annotations__
    except Exception:
        if not hasattr(made, "__annotate__"):  # another callable, or a Python before 3.14
            return {}
        import annotationlib

        return annotationlib.get_annotations(made, format=annotationlib.Format.STRING)


def read_annotation(annotation, module, namespace):
    """Returns what an annotation with quotes means; the text itself where it cannot be read."""
    text = getattr(annotation, "__forward_arg__", annotation)
    if not isinstance(text, str):
        has_quotes = getattr(annotation, "__args__", None) and "'" in str(annotation)
        return records().read_parts(annotation, module, namespace) if has_quotes else annotation
    try:
        made = eval(text, namespace)  # code of the user's own module, which is executed already
    except Exception:
        made = records().read_quoted(text, module, namespace)
    return text if isinstance(made, str) and made == text else read_annotation(made, module, namespace)


_forms = {}


def form_of(annotation):
    """Returns (form, origin, arguments): the word for how a type is written as JSON."""
    try:
        if annotation not in _forms:
            _forms[annotation] = _form_of(annotation)
        return _forms[annotation]
    except TypeError:  # one that cannot be a key
        return _form_of(annotation)


def _form_of(annotation):
    origin, arguments = origin_of(annotation)
    kind = getattr(origin, "__name__", str(origin))
    if annotation is None or isinstance(annotation, str) or str(annotation) in ANY or type(annotation).__name__ in ("TypeVar", "ForwardRef"):
        form = "any"
    elif kind in ("Union", "UnionType") or str(origin) == "typing.Union" or type(annotation).__name__ == "UnionType":
        form = "union"
    elif str(origin) == "typing.Literal":
        form = "literal"
    elif origin is type(None):
        form = "none"
    elif hasattr(origin, "__members__"):
        form = "enum"
    elif is_record(origin) or hasattr(origin, "__total__"):
        form = "record"
    elif origin in (float, bool, int, str):
        form = "scalar"
    elif kind in LISTS:
        form = "list" if arguments or kind in ("set", "frozenset", "tuple") else "any"
    elif kind in MAPS:
        form = "map" if arguments else "any"
    elif kind in TIMES and origin.__module__ == "datetime":
        form = "time"
    elif kind in TEXTS:
        form = "text"
    else:
        form = ""
    return form, origin, arguments


def mismatch(at, annotation, value):
    shown = repr(value)
    return StepError(f"{at or 'the value'} should be {name_of(annotation)}, and is {a(type(value).__name__)}: {shown if len(shown) < 80 else shown[:77] + '...'}")


def is_finite(value):
    return value == value and value not in (float("inf"), float("-inf"))


def float_text(value):
    return "nan" if value != value else "inf" if value > 0 else "-inf"


def to_plain(value, annotation=None, at="", depth=0):
    """Returns the value as what JSON has; raises StepError for one that would come back as another."""
    if depth > MAX_DEPTH:
        raise StepError(f"{at[:60]}... is nested too deeply, or contains itself")
    form, origin, arguments = form_of(annotation)
    if not form:
        raise mismatch(at, annotation, value)
    if hasattr(value, "dtype") and hasattr(value, "item") and getattr(value, "ndim", 1) == 0 and form != "any":
        value = value.item()  # a number of NumPy
    convert = _TO.get(form) or records().TO[form]
    return convert(value, annotation, origin, arguments, at, depth + 1)


def _any_to(value, annotation, origin, _arguments, at, depth):
    """Takes what JSON has, and nothing that would come back as another type."""
    kind = type(value)
    if isinstance(origin, type) and origin in (list, dict) and kind is not origin:
        raise mismatch(at, annotation, value)
    if value is None or kind in (bool, int, str) or (kind is float and is_finite(value)):
        return value
    if kind is list:
        return [to_plain(part, None, f"{at}[{i}]", depth) for i, part in enumerate(value)]
    if kind is dict and all(type(key) is str for key in value):
        return {key: to_plain(part, None, f"{at}[{key!r}]", depth) for key, part in value.items()}
    why = " with keys that are not texts" if kind is dict else " that is not finite" if kind is float else ""
    inside = "dict[str, {}]" if at.endswith("']") else "list[{}]" if at.endswith("]") else "{}"
    example = "dict[int, float]" if kind is dict else inside.format(name_of(kind))
    raise StepError(f"{at or 'the value'} is {a(name_of(kind))}{why}, which would not come back as it is: annotate its exact type, such as {example}")


def _none(value, annotation, _origin, _arguments, at, _depth=0):
    if value is None:
        return None
    raise mismatch(at, annotation, value)


def _scalar_to(value, annotation, origin, _arguments, at, _depth):
    if origin is float and type(value) in (int, float):
        return float(value) if is_finite(value) else float_text(value)
    if type(value) is origin:
        return value
    raise mismatch(at, annotation, value)


def _list_to(value, annotation, origin, arguments, at, depth):
    kind = origin.__name__
    if not isinstance(value, origin if kind in LISTS[:4] else (list, tuple)):
        raise mismatch(at, annotation, value)
    parts = _item_types(kind, arguments, value, annotation, at)
    items = [to_plain(part, each, f"{at}[{i}]", depth) for i, (part, each) in enumerate(zip(value, parts))]
    return sorted(items, key=json.dumps) if kind in ("set", "frozenset") else items


def _item_types(kind, arguments, value, annotation, at):
    if kind == "tuple" and arguments and arguments[-1] is not Ellipsis:
        arguments = () if arguments == ((),) else arguments
        if len(arguments) != len(value):
            raise mismatch(at, annotation, value)
        return arguments
    return [arguments[0] if arguments else None] * len(value)


def _map_to(value, annotation, _origin, arguments, at, depth):
    if not isinstance(value, dict):
        raise mismatch(at, annotation, value)
    texts = {key: to_plain(key, arguments[0], f"a key of {at or 'the value'}", depth) for key in value}
    return {text if type(text) is str else json.dumps(text): to_plain(value[key], arguments[1], f"{at}[{key!r}]", depth) for key, text in texts.items()}


_TO = {"any": _any_to, "none": _none, "scalar": _scalar_to, "list": _list_to, "map": _map_to}


def from_plain(value, annotation=None, at=""):
    """Returns the value of the type that ``to_plain`` made this of."""
    form, origin, arguments = form_of(annotation)
    if not form:
        raise mismatch(at, annotation, value)
    convert = _FROM.get(form) or records().FROM[form]
    return convert(value, annotation, origin, arguments, at)


def _any_from(value, annotation, origin, _arguments, at):
    if isinstance(origin, type) and origin in (list, dict) and type(value) is not origin:
        raise mismatch(at, annotation, value)
    return value


def _scalar_from(value, annotation, origin, _arguments, at):
    if origin is float and (type(value) in (int, float) or value in ("nan", "inf", "-inf")):
        return float(value)
    if type(value) is origin:
        return value
    raise mismatch(at, annotation, value)


def _list_from(value, annotation, origin, arguments, at):
    if not isinstance(value, list):
        raise mismatch(at, annotation, value)
    kind = origin.__name__
    parts = [from_plain(part, each, f"{at}[{i}]") for i, (part, each) in enumerate(zip(value, _item_types(kind, arguments, value, annotation, at)))]
    return {"tuple": tuple, "set": set, "frozenset": frozenset}.get(kind, list)(parts)


def _map_from(value, annotation, _origin, arguments, at):
    if not isinstance(value, dict):
        raise mismatch(at, annotation, value)
    def read_key(key):
        for text in (key, _json_or(key)):
            try:
                return from_plain(text, arguments[0], f"a key of {at or 'the value'}")
            except StepError:
                continue
        raise mismatch(f"a key of {at or 'the value'}", arguments[0], key)
    return {read_key(key): from_plain(part, arguments[1], f"{at}[{key!r}]") for key, part in value.items()}


def _json_or(text):
    try:
        return json.loads(text)
    except ValueError:
        return text


_FROM = {"any": _any_from, "none": _none, "scalar": _scalar_from, "list": _list_from, "map": _map_from}


def save_json(value, path, annotation):
    text = json.dumps(to_plain(value, annotation), allow_nan=False)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text + "\n")


def load_json(path, annotation):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    try:
        plain = json.loads(text)
    except ValueError as error:
        raise StepError(f"{path.rpartition('/')[2]} is not JSON: {error}") from error
    return from_plain(plain, annotation)
