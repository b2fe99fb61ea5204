"""The fixtures that give tests their Mosquitto."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from support.mosquitto import Mosquitto, OutsideBroker


@pytest.fixture(scope="session")
def mosquitto(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator["Mosquitto | OutsideBroker"]:
    """The plain broker that all tests of this process share: use your own topics and client ids."""
    from support.mosquitto import Mosquitto, outside_broker  # noqa: PLC0415  only for those who ask

    named = outside_broker()
    if named is not None:
        yield named
        return
    with Mosquitto(tmp_path_factory.mktemp("mosquitto")) as broker:
        yield broker


@pytest.fixture
def make_mosquitto(tmp_path: Path) -> Iterator[Callable[..., "Mosquitto"]]:
    """`make_mosquitto(acl=…, users=…, …)` starts a broker for this test alone, to kill and restart."""
    from support.mosquitto import Mosquitto, must_be_ours  # noqa: PLC0415  only for those who ask

    must_be_ours()
    with contextlib.ExitStack() as stack:
        made: list[Mosquitto] = []

        def make(**options: Any) -> Mosquitto:
            folder = tmp_path / f"mosquitto-{len(made)}"
            made.append(stack.enter_context(Mosquitto(folder, **options)))
            print(f"Mosquitto's log: {made[-1].log}")
            return made[-1]

        yield make
