"""Files and folders that are written elsewhere first: errors name the place that they are for."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from t10.core.atomic import filled_folder, staging_folder, write_text
from t10.errors import InputError


@pytest.mark.parametrize("new_folder", [filled_folder, staging_folder])
def test_errors_name_the_file_that_would_have_been_there(
    new_folder: Callable[[Path], AbstractContextManager[Path]], tmp_path: Path
) -> None:
    target = tmp_path / "out"
    with pytest.raises(InputError) as caught, new_folder(target) as new:
        write_text(new / "absent" / "report.html", "")
    assert caught.value.message.startswith(f"cannot write {target / 'absent' / 'report.html'}: ")
    assert not target.exists()
    assert not list(tmp_path.iterdir())
