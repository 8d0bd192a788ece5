"""What hostile texts can do to a terminal: nothing."""

from knowledge.cli.output import one_line


def test_a_text_is_one_line_in_which_no_character_acts_on_others() -> None:
    hostile = "a\n\x1b[31mb\u202ec\u2066d\u2028e"
    shown = one_line(hostile, 80)
    assert shown == "a\ufffd\ufffd[31mb\ufffdc\ufffdd\ufffde"


def test_a_long_text_is_cut_and_says_so() -> None:
    assert one_line("x" * 50, 10) == "x" * 9 + "…"
