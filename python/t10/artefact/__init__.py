"""Output folders: the manifest, its digests, and replacing a folder.

    with written(where, about) as into:        # all files of a new folder; they appear with the manifest, or not at all
        (into / "module.mlir").write_text(text)
    folder = Folder.open(where)                # every file that the manifest lists is there and is the one written
    folder.text("program/codelets.S")

`manifest` is the form of manifest.json, `code` the digests of users' files that a folder was made with.
"""

from t10.artefact.folder import MANIFEST_FILE, Folder, amended, check_replaceable, files_of, remade, written
from t10.artefact.manifest import CodeRecord, Description, FileRecord, Manifest, manifest_schema

__all__ = [
    "MANIFEST_FILE",
    "CodeRecord",
    "Description",
    "FileRecord",
    "Folder",
    "Manifest",
    "amended",
    "check_replaceable",
    "files_of",
    "manifest_schema",
    "remade",
    "written",
]
