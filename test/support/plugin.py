"""The package of test/plugin as an installer leaves it: its modules, and the entry points of its pyproject.toml."""

from __future__ import annotations

import shutil
from configparser import ConfigParser
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1] / "plugin"
_GROUP = 'project.entry-points."'


def install_plugin(folder: Path, name: str = "t10-example") -> Path:
    """Install the package, or one of another name with the same entry points, into a folder and return that."""
    project = ConfigParser(interpolation=None)
    project.read(SOURCE / "pyproject.toml", encoding="utf-8")
    groups = {each: project[each] for each in project.sections() if each.startswith(_GROUP)}
    lines: list[str] = []
    for section, entries in groups.items():
        lines.append(f"[{section.removeprefix(_GROUP).rstrip(chr(34))}]")
        lines += [f"{key} = {value.strip(chr(34))}" for key, value in entries.items()]
    info = folder / f"{name.replace('-', '_')}-0.1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.1\n", encoding="utf-8")
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    shutil.copytree(SOURCE / "src" / "t10_example", folder / "t10_example", dirs_exist_ok=True)
    return folder
