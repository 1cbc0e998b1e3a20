"""Each fault is noticed, and after its remedy everything is there: `make drill`."""

from __future__ import annotations

import pytest

from tests.drill.faults import FAULTS, POSTGRES, SQLITE
from tests.drill.place import ON_POSTGRES

STORE = POSTGRES if ON_POSTGRES else SQLITE
USUAL = 6
"""Of so many faults, the slow tests try one."""

TRIED = [
    pytest.param(
        fault, id=f"{fault.kind} {fault.what}", marks=pytest.mark.drill if number % USUAL else pytest.mark.slow
    )
    for number, fault in enumerate(FAULTS)
    if STORE in fault.stores
]


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("fault", TRIED)
def test_a_fault_is_noticed_and_after_its_remedy_everything_is_there(place, fault):
    place, state = place
    fault.do(place)
    said = place.run(fault.notices)[0] if fault.notices else place.said
    assert fault.says in said, said
    for line in fault.remedy:
        answer, status = place.run(line)
        assert status == 0, answer
    place.is_closed = False
    assert place.has(state)
    if not ON_POSTGRES:
        answer, status = place.run("kb doctor")
        assert status == 0, answer
