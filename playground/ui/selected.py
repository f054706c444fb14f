"""What a panel's browser keeps, read from whoever sent it: the base of every tab's `Selection`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ValidationError
from typing_extensions import Self


class Selected(BaseModel, frozen=True, extra="ignore"):
    """The fields of one panel, each with its value at first."""

    @classmethod
    def read(cls, sent: Mapping[str, Any]) -> Self:
        """From what a browser sent, whoever wrote it: a field that makes no sense is as it is at first."""
        try:
            return cls.model_validate(sent)
        except ValidationError as problem:
            wrong = {error["loc"][0] for error in problem.errors()}
            return cls.model_validate({name: value for name, value in sent.items() if name not in wrong})

    def to_dict(self) -> dict[str, Any]:
        """As the browser keeps it."""
        return self.model_dump(mode="json")

    def moved(self, **changes: Any) -> Self:
        """The same with some fields changed."""
        return self.model_copy(update=changes)
