"""`t10 asm FILE.S ...`: assemble, link, and show what came out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from t10.cli.arguments import Arguments
from t10.core.tile import IPU_MEMORY
from t10.core.trust.files import SOURCE_BYTES, read_text
from t10.isa.assembler import ObjectFile, Source, link, object_files
from t10.isa.image import DATA, MAIN, SECOND, SOLO, Image
from t10.isa.printer import image_text


def run_asm(arguments: Arguments) -> int:
    """Assemble and link files, and print the image as text that assembles to it again, its symbols as comments."""
    sources = [
        Source(read_text(path, SOURCE_BYTES, what="assembly file"), str(path)) for path in arguments.sources
    ]
    defines, include_paths = _defines(arguments.defines), arguments.include_paths
    if arguments.objects:
        files = object_files(sources, defines=defines, include_paths=include_paths)
        lines = [line for file in files for line in _listing(file)]
    else:
        image = link(
            sources,
            base_address=arguments.base_address,
            defines=defines,
            include_paths=include_paths,
            entries=arguments.entries,
        )
        lines = [*_summary(image), image_text(image).removesuffix("\n")]
    if not arguments.quiet:
        print("\n".join(lines))
    return 0


def _listing(file: ObjectFile) -> Iterator[str]:
    """Yield the lines of a file that is not linked."""
    yield f"{file.source}"
    for section in file.sections:
        what = "code" if section.is_code else "data"
        yield f"  section {section.name}: {section.n_bytes:,} bytes of {what}, aligned to {section.alignment_bytes}"
    for symbol in file.symbols:
        where = f"{symbol.value:#x}" if symbol.section is None else f"{symbol.section}+{symbol.value:#x}"
        yield f"  {symbol.binding} {symbol.name} = {where}"
    for name, where in file.needed.items():
        yield f"  needs {name}, used at {where}"


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
