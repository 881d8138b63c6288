"""The picture of the dashboard in the README is taken from a served page.

``CHANGEOVER_PICTURE_OF=http://127.0.0.1:8321/ CHANGEOVER_PICTURE=docs/dashboard.png pytest tests/dashboard/test_web_picture.py``
takes it anew from whatever is served there; without these variables the page of a made-up store is taken, and thrown
away.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from changeover.store.engine import Store

pytestmark = pytest.mark.browser


def test_the_readme_picture(
    busy_store: Store, serve_app: Callable[..., str], take_picture: Callable[..., Path], tmp_path: Path
):
    url = os.environ.get("CHANGEOVER_PICTURE_OF") or serve_app(busy_store)
    path = take_picture(url, Path(os.environ.get("CHANGEOVER_PICTURE") or tmp_path / "dashboard.png"))

    assert path.read_bytes().startswith(b"\x89PNG")
    assert path.stat().st_size > 50_000
