"""Macros of the C preprocessor: their definitions, and how text with them is expanded."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, NamedTuple

from t10.isa.assembler.lines import Problem

MOST_TOKENS = 200_000
"""Tokens one line may expand to: a bound for hostile macros."""

IDENTIFIER: Final = re.compile(r"[A-Za-z_]\w*")
_TOKEN: Final = re.compile(
    r"(?P<name>[A-Za-z_]\w*)"
    r"|(?P<number>\.?\d[\w.]*)"
    r'|(?P<string>"(?:\\.|[^"\\])*")'
    r"|(?P<space>\s+)"
    r"|(?P<paste>\#\#)"
    r"|(?P<other>.)",
    re.DOTALL,
)
_DEFINITION: Final = re.compile(r"\s*([A-Za-z_]\w*)(\(([^)]*)\))?(.*)\Z", re.DOTALL)


class Token(NamedTuple):
    """A token, and the macros that must not be expanded in it (they made it)."""

    kind: str
    text: str
    hidden: frozenset[str] = frozenset()


SPACE: Final = Token("space", " ")


@dataclass(frozen=True, slots=True)
class Macro:
    """`#define name body` or, where `parameters` is not None, `#define name(parameters) body`.

    The last parameter takes all that is left where `is_variadic`.
    """

    name: str
    parameters: tuple[str, ...] | None
    body: tuple[Token, ...]
    is_variadic: bool = False


def tokens_of(text: str) -> list[Token]:
    """Return the tokens of a line, spaces included."""
    return [Token(match.lastgroup or "other", match[0]) for match in _TOKEN.finditer(text)]


def text_of(tokens: list[Token]) -> str:
    """Return tokens as text."""
    return "".join(token.text for token in tokens)


def parse_definition(text: str) -> Macro:
    """Return the macro that stands behind `#define`. Raises Problem."""
    match = _DEFINITION.match(text)
    if match is None:
        raise Problem("#define needs a name")
    name, has_parameters, inside, body = match[1], match[2] is not None, match[3], match[4]
    if name == "defined":
        raise Problem("'defined' cannot be a macro")
    tokens = tuple(_trimmed(tokens_of(body)))
    if not has_parameters:
        return Macro(name, None, tokens)
    parameters = tuple(part.strip() for part in inside.split(",") if inside.strip())
    variadic = bool(parameters) and parameters[-1].endswith("...")
    if variadic:
        parameters = (*parameters[:-1], parameters[-1][:-3].strip() or "__VA_ARGS__")
    if not all(IDENTIFIER.fullmatch(parameter) for parameter in parameters):
        raise Problem(f"parameters of macro '{name}' are not names: ({inside})")
    if len(set(parameters)) != len(parameters):
        raise Problem(f"macro '{name}' has two parameters of one name")
    return Macro(name, parameters, tokens, variadic)


class Expander:
    """Expands the macros of one line of tokens (the algorithm of the C standard, with hide sets)."""

    def __init__(self, macros: dict[str, Macro]) -> None:
        """Use these macros, as they stand at each call."""
        self.macros = macros
        self.budget = MOST_TOKENS

    def expand_text(self, text: str) -> str:
        """Return a line expanded. Raises Problem for wrong calls and for text without bound."""
        self.budget = MOST_TOKENS
        try:
            return text_of(self.expand(tokens_of(text)))
        except RecursionError:
            raise Problem("macros are nested too deeply") from None

    def expand(self, tokens: list[Token]) -> list[Token]:
        """Return tokens with every macro expanded."""
        stack = tokens[::-1]
        done: list[Token] = []
        while stack:
            self.budget -= 1
            if self.budget < 0:
                raise Problem(f"macros expand to more than {MOST_TOKENS:,} tokens")
            token = stack.pop()
            macro = self.macros.get(token.text) if token.kind == "name" else None
            if macro is None or macro.name in token.hidden:
                done.append(token)
                continue
            if macro.parameters is None:
                result = self._substituted(macro, {}, token.hidden | {macro.name})
            else:
                call = _call(stack)
                if call is None:
                    done.append(token)
                    continue
                arguments, closing = call
                hidden = (token.hidden & closing.hidden) | {macro.name}
                result = self._substituted(macro, _bound(macro, arguments), hidden)
            stack.extend(reversed(result))
        return done

    def _substituted(
        self, macro: Macro, arguments: dict[str, list[Token]], hidden: frozenset[str]
    ) -> list[Token]:
        """Return a macro's body with its arguments put in, `#` and `##` done, and `hidden` added to every token."""
        out: list[Token] = []
        body = macro.body
        index = 0
        while index < len(body):
            token = body[index]
            if token.text == "#" and macro.parameters is not None:
                after = _next_solid(body, index + 1)
                if after is not None and body[after].text in arguments:
                    out.append(Token("string", _quoted(arguments[body[after].text])))
                    index = after + 1
                    continue
            if token.kind == "paste" and out:
                after = _next_solid(body, index + 1)
                if after is not None:
                    right = arguments.get(body[after].text, [body[after]])
                    _paste(out, right)
                    index = after + 1
                    continue
            if token.kind == "name" and token.text in arguments:
                beside_paste = _is_pasted(body, index)
                taken = arguments[token.text]
                out.extend(taken if beside_paste else self.expand(list(taken)))
            else:
                out.append(token)
            index += 1
        self.budget -= len(out)
        if self.budget < 0:
            raise Problem(f"macros expand to more than {MOST_TOKENS:,} tokens")
        return [token._replace(hidden=token.hidden | hidden) for token in out]


def is_call_open(text: str, macros: dict[str, Macro]) -> bool:
    """Return whether a line ends within the arguments of a macro, so that it goes on in the next one."""
    for match in IDENTIFIER.finditer(text):
        macro = macros.get(match[0])
        if macro is None or macro.parameters is None:
            continue
        depth = 0
        rest = text[match.end() :]
        if not rest.lstrip().startswith("("):
            continue
        for char in rest:
            depth += (char == "(") - (char == ")")
            if char == ")" and depth == 0:
                break
        else:
            return True
    return False


def _call(stack: list[Token]) -> tuple[list[list[Token]], Token] | None:
    """Take `( arguments )` from a stack of tokens; None, with nothing taken, where there is no `(`."""
    top = len(stack) - 1
    while top >= 0 and stack[top].kind == "space":
        top -= 1
    if top < 0 or stack[top].text != "(":
        return None
    arguments: list[list[Token]] = [[]]
    depth = 0
    for position in range(top, -1, -1):
        token = stack[position]
        if token.text == "(":
            depth += 1
        elif token.text == ")":
            depth -= 1
        if depth == 0:
            del stack[position:]
            return [_trimmed(argument) for argument in arguments], token
        if depth == 1 and token.text == ",":
            arguments.append([])
        elif not (depth == 1 and token.text == "(" and position == top):
            arguments[-1].append(token)
    raise Problem("')' of a macro call is missing")


def _bound(macro: Macro, arguments: list[list[Token]]) -> dict[str, list[Token]]:
    """Return arguments by parameter; raises Problem where their number is wrong."""
    parameters = macro.parameters or ()
    if not parameters and arguments == [[]]:
        return {}
    if macro.is_variadic and len(arguments) >= len(parameters):
        rest = arguments[len(parameters) - 1 :]
        joined = rest[0]
        for more in rest[1:]:
            joined = [*joined, Token("other", ","), SPACE, *more]
        arguments = [*arguments[: len(parameters) - 1], joined]
    elif macro.is_variadic and len(arguments) == len(parameters) - 1:
        arguments = [*arguments, []]
    if len(arguments) != len(parameters):
        raise Problem(f"macro '{macro.name}' takes {len(parameters)} arguments, found {len(arguments)}")
    return dict(zip(parameters, arguments, strict=True))


def _trimmed(tokens: list[Token]) -> list[Token]:
    start, end = 0, len(tokens)
    while start < end and tokens[start].kind == "space":
        start += 1
    while end > start and tokens[end - 1].kind == "space":
        end -= 1
    return tokens[start:end]


def _next_solid(body: tuple[Token, ...], index: int) -> int | None:
    """Return the first token from `index` on that is no space."""
    while index < len(body) and body[index].kind == "space":
        index += 1
    return index if index < len(body) else None


def _is_pasted(body: tuple[Token, ...], index: int) -> bool:
    """Return whether `##` follows a token of a body; the operand on its right is taken with it."""
    after = _next_solid(body, index + 1)
    return after is not None and body[after].kind == "paste"


def _paste(out: list[Token], right: list[Token]) -> None:
    """Join the last token of `out` with the first of `right`, and append the rest."""
    while out and out[-1].kind == "space":
        out.pop()
    if not right:
        return
    if not out:
        out.extend(right)
        return
    left = out.pop()
    joined = tokens_of(left.text + right[0].text)
    hidden = left.hidden & right[0].hidden
    out.extend(token._replace(hidden=hidden) for token in joined)
    out.extend(right[1:])


def _quoted(tokens: list[Token]) -> str:
    """Return an argument as a string literal."""
    parts: list[str] = []
    for token in tokens:
        text = " " if token.kind == "space" else token.text
        parts.append(text.replace("\\", "\\\\").replace('"', '\\"') if token.kind == "string" else text)
    return '"' + "".join(parts) + '"'
