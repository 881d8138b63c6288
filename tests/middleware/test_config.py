"""Settings: arguments before environment before defaults, each checked once."""

from __future__ import annotations

from pathlib import Path

import pytest

from changeover.config import Config, ConfigurationError, spool_for, sqlite_file


def test_defaults(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    config = Config.resolve(environ={})

    assert config.store == f"sqlite:///{tmp_path}/changeover.db"
    assert config.spool == tmp_path / "changeover.db.spool"
    assert config.service == "unknown_service"
    assert config.recording is True


def test_the_environment_comes_before_the_defaults_and_arguments_before_both(tmp_path):
    environ = {
        "CHANGEOVER_STORE": f"sqlite:///{tmp_path}/env.db",
        "CHANGEOVER_SERVICE": " env ",
        "CHANGEOVER_SPOOL": str(tmp_path / "env"),
        "CHANGEOVER_ENABLED": "false",
    }
    from_environment = Config.resolve(environ=environ)
    from_arguments = Config.resolve(
        store=f"sqlite:///{tmp_path}/arg.db", service="arg", spool=tmp_path / "arg", recording=True, environ=environ
    )

    assert (from_environment.store, from_environment.service) == (f"sqlite:///{tmp_path}/env.db", "env")
    assert (from_environment.spool, from_environment.recording) == (tmp_path / "env", False)
    assert (from_arguments.store, from_arguments.service) == (f"sqlite:///{tmp_path}/arg.db", "arg")
    assert (from_arguments.spool, from_arguments.recording) == (tmp_path / "arg", True)


def test_the_service_falls_back_to_opentelemetrys_own_name():
    assert Config.resolve(environ={"OTEL_SERVICE_NAME": "orders", "CHANGEOVER_SERVICE": ""}).service == "orders"


@pytest.mark.parametrize("word", ["true", " TRUE ", "1", "yes", "On", ""])
def test_words_that_mean_on(word):
    assert Config.resolve(environ={"CHANGEOVER_ENABLED": word}).recording is True


@pytest.mark.parametrize("word", ["false", "False", "0", " no", "off"])
def test_words_that_mean_off(word):
    assert Config.resolve(environ={"CHANGEOVER_ENABLED": word}).recording is False


@pytest.mark.parametrize("word", ["maybe", "falsey", "2", "disabled", "fa lse"])
def test_any_other_word_is_refused(word):
    with pytest.raises(ConfigurationError, match=f"CHANGEOVER_ENABLED must be true or false, not '{word}'"):
        Config.resolve(environ={"CHANGEOVER_ENABLED": word})


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"store": ""}, "store must be a database URL"),
        ({"store": 3}, "store must be a database URL"),
        ({"store": "calls.db"}, "write sqlite:///calls.db"),
        ({"store": "mysql://host/x"}, "unknown kind 'mysql': use sqlite or postgresql"),
        ({"store": "sqlite://"}, "names no file"),
        ({"store": "sqlite:///:memory:"}, "names no file"),
        ({"store": "sqlite:////tmp"}, "is a folder"),
        ({"service": " "}, "service must be a name"),
        ({"spool": 3}, "spool must be the path of a folder"),
        ({"spool": __file__}, "is not a folder"),
        ({"recording": "no"}, "recording must be True or False"),
    ],
)
def test_a_setting_that_cannot_be_used_is_named(options, says):
    with pytest.raises(ConfigurationError, match=says) as caught:
        Config.resolve(**options, environ={})
    assert isinstance(caught.value, ValueError)
    assert "\n" not in str(caught.value)


def test_a_refusal_never_shows_a_password():
    with pytest.raises(ConfigurationError) as caught:
        Config.resolve(store="mysql://me:FAKE-PW@host/x", environ={})

    assert "FAKE-PW" not in str(caught.value)


def test_a_relative_store_stays_where_it_was_when_the_process_moves(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    config = Config.resolve(store="sqlite:///calls.db?timeout=5", environ={})

    assert config.store == f"sqlite:///{tmp_path}/calls.db?timeout=5"
    assert sqlite_file(config.store) == tmp_path / "calls.db"


def test_the_spool_lies_beside_a_file_and_in_the_state_folder_for_a_server(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    server = spool_for("postgresql://me:one@host/db")

    assert spool_for("sqlite:////data/calls.db") == Path("/data/calls.db.spool")
    assert server.parent == tmp_path / "changeover"
    assert server == spool_for("postgresql://me:another@host/db")
    assert server != spool_for("postgresql://me@host/other")
