"""The knife of one trial: it counts the resumptions of what it watches and kills at one of them.

Rules: what is watched is counted together, in the order it is stepped. The kill comes just before
the step, so the line named is the await that does not return. It happens once; afterwards only
counting goes on.

Not here: what a kill does to a request or a redrive run (`stage`, `scenario_subject`).
"""

from collections.abc import Callable

from platform_sim.lab.sweep.places import Code, Place
from platform_sim.lifetime.gate import Gate, Stepper

__all__ = ["Cutter"]


class Cutter:
    """Counts, and kills at one resumption.

    Args:
        code: Names the places.
        at: The resumption to kill at, from 1; None kills nowhere.
        recording: Whether the place of every resumption is kept.

    Attributes:
        count: Resumptions so far, the killed one included.
        place: Where the cut fell, or None as long as it has not.
        places: The place of every resumption so far, when recording.
        unfinished: Where every task that may have had work before it stood at the cut.
    """

    def __init__(self, code: Code, *, at: int | None = None, recording: bool = False) -> None:
        self.count = 0
        self.place: Place | None = None
        self.places: list[Place] = []
        self.unfinished: tuple[Place, ...] = ()
        self._code = code
        self._at = at
        self._recording = recording

    def watch(self, gate: Gate, kill: Callable[[], None], *, root: str = "the app call") -> None:
        """Count the resumptions of a gate; `kill` stops it for good.

        Args:
            gate: What is watched, from before its first step on.
            kill: Called at the cut, from inside the step that will not be taken.
            root: What its first task is called.
        """
        first: list[Stepper] = []

        def place(stepper: Stepper) -> Place:
            return self._code.place_of(stepper, task=root if stepper is first[0] else None)

        def before_step(stepper: Stepper) -> None:
            if not first:
                first.append(stepper)
            self.count += 1
            if self._recording:
                self.places.append(place(stepper))
            if self.count == self._at:
                self.place = place(stepper)
                stood = [place(each) for each in gate.live]
                self.unfinished = tuple(each for each in stood if each.may_have_work)
                kill()

        gate.before_step = before_step
