"""Models of other libraries as arguments: equal fields give equal texts, and no code of the model runs."""

from __future__ import annotations

from typing import Any

import pytest

from changeover.arguments import canonical_json


def test_br_05_17_pydantic_models_count_by_their_fields():
    pydantic = pytest.importorskip("pydantic")

    class Address(pydantic.BaseModel):
        city: str

    class Order(pydantic.BaseModel):
        model_config = pydantic.ConfigDict(extra="allow")
        id: int
        address: Address
        total: float = 1.0

    model = Order(id=1, address=Address(city="X"), note="n")

    assert canonical_json(model) == b'{"address":{"city":"X"},"id":1,"note":"n","total":1}'
    assert canonical_json(model) == canonical_json(model.model_dump())


def test_a_pydantic_root_model_is_an_object_and_a_secret_is_no_data():
    pydantic = pytest.importorskip("pydantic")

    assert canonical_json(pydantic.SecretStr("hunter2")) == b'{"$object":"pydantic.types.SecretStr"}'
    assert canonical_json(pydantic.RootModel[list[int]]([1])) == canonical_json(pydantic.RootModel[list[int]]([1]))


def test_attrs_classes_count_by_their_fields():
    attrs = pytest.importorskip("attrs")

    @attrs.define
    class Point:
        x: int
        y: Any = None

    assert canonical_json(Point(1)) == b'{"x":1,"y":null}'


def test_msgspec_structs_count_by_their_fields():
    msgspec = pytest.importorskip("msgspec")
    point = msgspec.defstruct("Point", [("x", int)])

    assert canonical_json(point(1)) == b'{"x":1}'


def test_numpy_values_count_by_what_they_hold():
    numpy = pytest.importorskip("numpy")

    assert canonical_json([numpy.int64(5), numpy.float64(1.0), numpy.float32(0.5)]) == b"[5,1,0.5]"
    assert canonical_json(numpy.array([1, 2])) == canonical_json(numpy.array([1, 2]))
    assert canonical_json(numpy.array([1, 2])) != canonical_json(numpy.array([1, 3]))
