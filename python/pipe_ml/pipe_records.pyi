from typing import Any, Callable, Dict, List

absent: List[Callable[[str, str], Any]]

def fields_of(kind: Any) -> Dict[str, Any]: ...
