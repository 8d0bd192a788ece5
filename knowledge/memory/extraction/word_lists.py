"""The words that decide what a clause says, and whether it says anything."""

from __future__ import annotations

from typing import Final


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# --- what keeps a clause from asserting something

NEGATIONS: Final = _words("never hardly barely rarely no neither nor")
DOUBTS: Final = _words("maybe perhaps probably possibly hopefully ideally")
CONDITIONS: Final = _words("if unless whether once until lest")
CIRCUMSTANCES: Final = _words("when whenever while before after")
BELIEFS: Final = _words(
    "think believe guess suspect assume hope wonder imagine suppose doubt wish ask propose "
    "suggest recommend consider expect let pretend fear seem appear"
)
INTENTIONS: Final = _words(
    "want plan hope need intend like try wish have suppose aim go propose suggest consider "
    "ask tell expect prefer ought attempt allow let get wait seem appear"
)
ENDS: Final = _words("stop cease avoid refuse fail quit forget decline")
DECISIONS: Final = _words("decide choose agree opt commit")
TRANSPARENT: Final = _words("start begin continue keep manage help")

# --- what clauses say

STATES: Final = _words(
    "deprecated retired broken flaky stable live down healthy experimental obsolete "
    "unmaintained archived frozen proposed disabled enabled unstable legacy"
)
NO_RELATION: Final = _words(
    "instead because due despite except without unlike like than during after before until "
    "since while within per about of by as besides regarding"
)
EMPTY_VERBS: Final = _words(
    "want see look think know guess mean say get make do go come take give let try find ask "
    "tell hope wish thank show seem appear happen feel talk work help hear keep put start "
    "end begin stay turn become leave need bring call point note add check change update "
    "fix test mention remember understand wonder notice"
)

# --- what is no name, or no part of one

KINDS: Final = _words(
    "service services class module component function method table file package library "
    "repo repository database queue topic endpoint job worker team project app application "
    "server cluster handler tool framework branch pipeline script command flag variable"
)
VAGUE: Final = _words(
    "thing things something anything nothing everything stuff way ways lot lots bit kind "
    "sort one ones people someone anyone everyone person time times case cases example part "
    "reason fact idea question sense today tomorrow yesterday issue problem everybody "
    "nobody rest number couple couples bunch point place matter chance moment while "
    "ours mine yours theirs hers former latter other others all both each some any none half much many few more most less "
    "enough start end"
)
LEFT_OUT: Final = _words(
    "same other such many several few own new old current whole entire certain different "
    "various first second next last main only more most less little actual overall "
    "respective"
)
