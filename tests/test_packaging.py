"""What is built is what people install: one top-level name, nothing missing, the same from wheel and sdist."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SETUPTOOLS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
NO_SOURCE = {".git", ".venv", "build", "dist", "__pycache__", ".hypothesis"}


def copy_source(target: Path) -> Path:
    """Copy what a fresh clone would hold: what git knows, or the whole folder where there is no git."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if listed.returncode == 0 and (ROOT / ".git").exists():
        for name in filter(None, listed.stdout.split("\0")):
            if (ROOT / name).is_file():
                (target / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, target / name)
    else:
        ignored = shutil.ignore_patterns(*NO_SOURCE, "*.egg-info", "*.db*", ".*_cache")
        shutil.copytree(ROOT, target, ignore=ignored, dirs_exist_ok=True)
    return target


def build(source: Path, kind: str, out: Path) -> Path:
    """Build with the project's own backend, in a process of its own and without the network."""
    out.mkdir(parents=True, exist_ok=True)
    program = f"from setuptools import build_meta; print(build_meta.build_{kind}({str(out)!r}))"
    done = subprocess.run([sys.executable, "-c", program], cwd=source, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return out / done.stdout.splitlines()[-1]


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy_source(tmp_path_factory.mktemp("source"))


@pytest.fixture(scope="module")
def wheel(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(source, "wheel", tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def sdist(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(source, "sdist", tmp_path_factory.mktemp("sdist"))


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    site = tmp_path_factory.mktemp("site")
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--target", site, wheel],
        check=True,
        env={**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1"},
    )
    return site


def files_of(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if not name.endswith("/")}


def code_of(wheel: Path) -> set[str]:
    return {name for name in files_of(wheel) if ".dist-info/" not in name}


def test_changeover_is_the_only_name_that_a_wheel_brings(wheel: Path) -> None:
    top = {name.split("/")[0] for name in code_of(wheel)}

    assert top == {"changeover"}


def test_every_file_of_the_code_is_in_the_wheel(wheel: Path, source: Path) -> None:
    """Modules, templates, static files, migrations with their template, and the typing marker."""
    expected = {
        f"{package.replace('.', '/')}/{path.relative_to(source / folder).as_posix()}"
        for package, folder in SETUPTOOLS["package-dir"].items()
        for path in (source / folder).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and path.suffix != ".pyc"
    }

    assert code_of(wheel) == expected


def test_the_wheel_holds_what_setuptools_leaves_out_unless_told(wheel: Path) -> None:
    held = files_of(wheel)

    assert {"changeover/py.typed", "changeover/migrations/script.py.mako", "changeover/migrations/env.py"} <= held
    assert any(name.startswith("changeover/migrations/versions/") for name in held)
    assert any(name.startswith("changeover/dashboard/web/templates/") for name in held)
    assert any(name.startswith("changeover/dashboard/web/static/vendor/") for name in held)
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in held)
    assert any("/licenses/dashboard/web/static/vendor/" in name for name in held)


def test_an_sdist_builds_the_same_wheel(wheel: Path, sdist: Path, tmp_path: Path) -> None:
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    (unpacked,) = tmp_path.iterdir()
    again = build(unpacked, "wheel", tmp_path / "out")

    assert files_of(again) == files_of(wheel)


def test_an_sdist_holds_the_tests_and_the_papers(sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}

    assert {"LICENSE", "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "tests/test_packaging.py"} <= names


@pytest.fixture
def project_of_a_user(tmp_path: Path) -> Path:
    """A folder whose owner named modules as our folders are named."""
    for name in ("store", "dashboard", "migrations", "middleware"):
        (tmp_path / f"{name}.py").write_text("MINE = True\n")
    return tmp_path


def run(site: Path, folder: Path, *command: str | Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(site)}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_the_console_script_works_where_a_user_has_a_store_of_their_own(
    installed: Path, project_of_a_user: Path
) -> None:
    done = run(installed, project_of_a_user, installed / "bin" / "changeover", "flag", "--help")

    assert done.returncode == 0, done.stderr
    assert "Usage: changeover flag" in done.stdout


def test_python_m_changeover_works_where_a_user_has_a_store_of_their_own(
    installed: Path, project_of_a_user: Path
) -> None:
    done = run(installed, project_of_a_user, sys.executable, "-m", "changeover", "flag", "--help")

    assert done.returncode == 0, done.stderr
    assert "Usage: changeover flag" in done.stdout


def test_the_installed_package_and_a_user_s_modules_do_not_hide_each_other(
    installed: Path, project_of_a_user: Path
) -> None:
    program = "import store, dashboard, changeover.store, changeover.dashboard; print(store.MINE, changeover.__file__)"
    done = run(installed, project_of_a_user, sys.executable, "-c", program)

    assert done.stdout.split() == ["True", str(installed / "changeover" / "__init__.py")], done.stderr


def test_python_m_changeover_works_in_the_root_of_a_clone() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "changeover", "--version"], cwd=ROOT, capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("changeover ")
