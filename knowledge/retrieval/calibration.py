"""What a cosine means with a profile: some models put everything above .7, others answers at .6.

A dozen questions and the sentences that answer them are embedded once a process and profile. The
mean cosine of a question with the others' answers is what nothing in common looks like, that with
its own what an answer looks like; a cosine is read on the scale between the two.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from knowledge.profiles.profile import Embedder

PAIRS: Final = (
    ("When does the ferry to the island leave?", "The last boat to the island sails at six."),
    ("Who repairs the coffee machine?", "Call Martin when the espresso maker is broken."),
    ("How is the access token renewed?", "A client asks for a fresh token with its secret."),
    ("What did Ines plant in spring?", "In April Ines put tomatoes and beans into her garden."),
    ("Does aspirin lower the risk of stroke?", "The trial saw fewer strokes among aspirin users."),
    ("Which bridge was closed for repairs?", "Repairs have shut the old railway bridge till May."),
    ("How many goals did the team score?", "The match ended with three goals for the home team."),
    ("Why is the build failing on Windows?", "Windows builds break because a path is too long."),
    ("Where do the swallows spend the winter?", "Swallows fly to southern Africa for the winter."),
    ("What does the lease say about pets?", "Tenants may keep a cat or a small dog in the flat."),
    ("Who painted the portrait in the hall?", "The portrait in the hall is by a painter of Delft."),
    ("How long must the dough rest?", "Leave the dough alone for two hours before baking."),
)

LEAST_DIFFERENCE: Final = 0.02
"""Of the two means. MiniLM has .60 between them, e5-small-v2 .13."""


@dataclass(frozen=True, slots=True)
class CosineScale:
    """Mean cosines of questions with sentences about something else, and with their answers."""

    unrelated: float
    related: float

    def strength(self, cosine: float) -> float:
        """0 where two texts have nothing in common, 1 for an answer like those measured with."""
        return (cosine - self.unrelated) / (self.related - self.unrelated)


def measure_scale(embedder: Embedder) -> CosineScale | None:
    """A profile's scale; None of a model that does not tell answers from other sentences.

    Raises what embedding raises.
    """
    questions = np.stack([embedder.embed_query(question) for question, _ in PAIRS])
    answers = embedder.embed([answer for _, answer in PAIRS]).vectors
    cosines = questions @ answers.T
    own = np.eye(len(PAIRS), dtype=bool)
    scale = CosineScale(float(cosines[~own].mean()), float(cosines[own].mean()))
    return scale if scale.related - scale.unrelated >= LEAST_DIFFERENCE else None
