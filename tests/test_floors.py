"""The rooms are floors: imports go down only, and `import changeover` stays light."""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parent.parent
PACKAGE_DIR: dict[str, str] = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-dir"]

FLOOR_0 = (
    "changeover.contract",
    "changeover.semconv",
    "changeover.rollout",
    "changeover.arguments",
    "changeover.canonical",
    "changeover.numerals",
    "changeover.cuts",
    "changeover.jsonable",
    "changeover.masking",
    "changeover.numerals",
    "changeover.secret_shapes",
    "changeover.redact",
    "changeover.masking",
    "changeover.secret_shapes",
    "changeover.cuts",
    "changeover.config",
)
ROOMS_ABOVE = ("changeover.store", "changeover.dashboard", "changeover.migrations")
ENTRY_POINT = "changeover.__main__"
"""`python -m changeover` hands over to the command line, so it stands above every floor."""

HEAVY = ("flask", "sqlalchemy", "alembic", "opentelemetry.sdk", "click", "rich", "waitress", "openfeature")
FRAMEWORKS = ("mcp", "fastmcp", "langchain", "langchain_core", "openai", "anthropic", "agents", "crewai", "pydantic_ai")


@dataclass(frozen=True)
class Import:
    importer: str
    imported: str
    late: bool
    typing_only: bool
    level: int
    place: str


def within(module: str, *packages: str) -> bool:
    return any(module == package or module.startswith(package + ".") for package in packages)


def modules() -> dict[str, Path]:
    found = {}
    for package, folder in PACKAGE_DIR.items():
        for path in sorted((ROOT / folder).rglob("*.py")):
            parts = path.relative_to(ROOT / folder).with_suffix("").parts
            name = ".".join((package, *parts)).removesuffix(".__init__")
            found[name] = path
    return found


MODULES = modules()


def imports_of(module: str, path: Path) -> Iterator[Import]:
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]

    def visit(node: ast.AST, *, late: bool, typing_only: bool) -> Iterator[Import]:
        for child in ast.iter_child_nodes(node):
            inside = late or isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            for_types = typing_only or (isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test))
            place = f"{path.relative_to(ROOT)}:{getattr(child, 'lineno', 0)}"
            if isinstance(child, ast.Import):
                for alias in child.names:
                    yield Import(module, alias.name, inside, for_types, 0, place)
            elif isinstance(child, ast.ImportFrom):
                base = child.module or ""
                if child.level:
                    parent = package.rsplit(".", child.level - 1)[0] if child.level > 1 else package
                    base = f"{parent}.{base}".rstrip(".")
                for alias in child.names:
                    deeper = f"{base}.{alias.name}"
                    imported = deeper if deeper in MODULES else base
                    yield Import(module, imported, inside, for_types, child.level, place)
            yield from visit(child, late=inside, typing_only=for_types)

    yield from visit(ast.parse(path.read_text()), late=False, typing_only=False)


OURS = [
    found
    for module, path in MODULES.items()
    for found in imports_of(module, path)
    if within(found.imported, "changeover")
]


def offending(broken: list[Import]) -> list[str]:
    return [f"{found.place} {found.importer} imports {found.imported}" for found in broken]


def test_the_contract_imports_nothing_of_ours() -> None:
    broken = [
        found
        for found in OURS
        if within(found.importer, "changeover.contract") and not within(found.imported, "changeover.contract")
    ]

    assert offending(broken) == []


def test_floor_0_imports_nothing_above_itself() -> None:
    broken = [found for found in OURS if within(found.importer, *FLOOR_0) and not within(found.imported, *FLOOR_0)]

    assert offending(broken) == []


def test_the_store_imports_floor_0_and_the_migrations_only() -> None:
    allowed = (*FLOOR_0, "changeover.store", "changeover.migrations")
    broken = [
        found for found in OURS if within(found.importer, "changeover.store") and not within(found.imported, *allowed)
    ]

    assert offending(broken) == []


def test_the_migrations_import_nothing_but_the_store_and_what_it_stands_on() -> None:
    allowed = (*FLOOR_0, "changeover.store", "changeover.migrations")
    broken = [
        found
        for found in OURS
        if within(found.importer, "changeover.migrations") and not within(found.imported, *allowed)
    ]

    assert offending(broken) == []


def test_the_middleware_reaches_the_store_late_and_never_the_dashboard() -> None:
    broken = [
        found
        for found in OURS
        if not within(found.importer, *ROOMS_ABOVE, ENTRY_POINT)
        and (
            within(found.imported, "changeover.dashboard", "changeover.migrations")
            or (within(found.imported, "changeover.store") and not (found.late or found.typing_only))
        )
    ]

    assert offending(broken) == []


def test_relative_imports_stay_inside_their_folder() -> None:
    def room(module: str) -> str:
        return next((above for above in ROOMS_ABOVE if within(module, above)), "changeover")

    broken = [found for found in OURS if found.level and room(found.importer) != room(found.imported)]

    assert offending(broken) == []


def test_no_modules_import_each_other_in_a_circle() -> None:
    graph: dict[str, set[str]] = {module: set() for module in MODULES}
    for found in OURS:
        if not (found.late or found.typing_only) and found.imported != found.importer:
            graph[found.importer].add(found.imported)
    try:
        tuple(TopologicalSorter(graph).static_order())
        circle = None
    except CycleError as error:
        circle = error.args[1]

    assert circle is None


def test_every_code_folder_is_a_listed_package() -> None:
    listed = set(tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"])
    folders = {
        name if path.name == "__init__.py" else name.rpartition(".")[0]
        for name, path in MODULES.items()
        if path.name == "__init__.py" or name.count(".") > 1
    }

    assert folders - {"changeover"} <= listed


def loaded_after(statement: str) -> set[str]:
    program = f"{statement}\nimport sys\nprint(*sys.modules, sep='\\n')"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines())


@pytest.mark.parametrize(
    "statement",
    ["import changeover", "from changeover import *"],
)
def test_importing_changeover_loads_no_web_server_no_database_and_no_framework(statement: str) -> None:
    loaded = loaded_after(statement)

    assert [name for name in (*HEAVY, *FRAMEWORKS) if name in loaded] == []


def test_the_help_of_the_command_line_loads_no_web_server_and_no_database() -> None:
    statement = (
        "from changeover.dashboard.cli import cli\n"
        "cli.main(['--help'], standalone_mode=False)\n"
        "import sys; sys.stdout.flush()"
    )
    loaded = loaded_after(statement)

    assert [name for name in ("flask", "sqlalchemy", "alembic", "opentelemetry.sdk", "rich") if name in loaded] == []
