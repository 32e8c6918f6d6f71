"""A number stands before the singular only if it is one."""

from agiraph.core.domain.text.plurals import counted, times


def test_a_number_has_the_noun_that_goes_with_it() -> None:
    assert [counted(n, "task") for n in (0, 1, 2, 2000)] == [
        "0 tasks",
        "1 task",
        "2 tasks",
        "2,000 tasks",
    ]
    assert [counted(n, "delivery is", "deliveries are") for n in (1, 3)] == [
        "1 delivery is",
        "3 deliveries are",
    ]
    assert [times(n) for n in (0, 1, 2)] == ["0 times", "once", "2 times"]
