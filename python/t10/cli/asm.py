"""`t10 asm FILE.S`: assemble, and show what came out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from t10.cli.arguments import Arguments
from t10.core.tile import IPU_MEMORY
from t10.core.trust.files import SOURCE_BYTES, read_text
from t10.isa.assembler import assemble
from t10.isa.image import DATA, MAIN, SECOND, SOLO, Image
from t10.isa.printer import image_text


def run_asm(arguments: Arguments) -> int:
    """Assemble a file and print the image as text that assembles to it again, with what it defines as comments."""
    path = arguments.source
    text = read_text(path, SOURCE_BYTES, what="assembly file")
    image = assemble(
        text,
        base_address=arguments.base_address,
        source=str(path),
        defines=_defines(arguments.defines),
        include_paths=arguments.include_paths,
    )
    if not arguments.quiet:
        for line in _summary(image):
            print(line)
        print(image_text(image), end="")
    return 0


def _defines(texts: tuple[str, ...]) -> Mapping[str, str]:
    """Return macros by name from `NAME=TEXT` and `NAME`, which is 1."""
    parted = (text.partition("=") for text in texts)
    return {name: body if equals else "1" for name, equals, body in parted}


def _summary(image: Image) -> Iterator[str]:
    """Yield what an image holds, as comment lines: its extent, its kinds of words, its symbols."""
    kinds: list[int] = image.words[:, 0].tolist()
    end = image.base_address + image.size_bytes
    yield (
        f"// {image.size_bytes:,} bytes at {image.base_address:#x}..{end:#x}: {kinds.count(MAIN):,} bundles, "
        f"{kinds.count(SOLO):,} instructions alone ({kinds.count(SECOND):,} of two words), "
        f"{4 * kinds.count(DATA):,} bytes of data"
    )
    if end > IPU_MEMORY.interleaved_base:
        yield f"// warning: code runs only below {IPU_MEMORY.interleaved_base:#x}"
    for name, address in sorted(image.symbols.items(), key=lambda item: (item[1], item[0])):
        size = f", {image.sizes[name]:,} bytes" if name in image.sizes else ""
        stack = f", {image.stack_bytes[name]:,} bytes of stack" if name in image.stack_bytes else ""
        yield f"// {address:#x} {name}{size}{stack}"
