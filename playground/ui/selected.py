"""The base class of every tab's `Selection`: what the browser keeps of a panel, checked when it is sent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ValidationError
from typing_extensions import Self


class Selected(BaseModel, frozen=True, extra="ignore"):
    """The fields of one panel, each with its default."""

    @classmethod
    def read(cls, sent: Mapping[str, Any]) -> Self:
        """The selection that a browser sent. A field with an invalid value gets its default."""
        try:
            return cls.model_validate(sent)
        except ValidationError as problem:
            wrong = {error["loc"][0] for error in problem.errors()}
            return cls.model_validate({name: value for name, value in sent.items() if name not in wrong})

    def to_dict(self) -> dict[str, Any]:
        """The selection in the form that the browser keeps."""
        return self.model_dump(mode="json")

    def moved(self, **changes: Any) -> Self:
        """The selection with some fields changed."""
        return self.model_copy(update=changes)
