"""Whether the names in a model are text: protocol buffers hand out bytes where a string is not UTF-8."""

from __future__ import annotations

from typing import Any

import onnx
from google.protobuf.message import Message

_STRING, _MESSAGE = 9, 11
"""Numbers of field types, as protocol buffers have them."""


def first_not_text(model: Any) -> str:
    """Return the name of the first field that should be text and is not UTF-8; empty if there is none.

    Of tensors only the names are looked at.
    """
    waiting: list[Any] = [model]
    while waiting:
        message = waiting.pop()
        if isinstance(message, onnx.TensorProto):
            if isinstance(message.name, bytes):
                return "name"
            waiting.extend(message.external_data)
            continue
        for field, value in message.ListFields():
            if field.type == _MESSAGE:
                waiting.extend((value,) if isinstance(value, Message) else value)
            elif field.type == _STRING:
                values = (value,) if isinstance(value, str | bytes) else value
                if any(isinstance(each, bytes) for each in values):
                    return str(field.name)
    return ""
