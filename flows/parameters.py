"""Types of flow parameters, as the form on Prefect's page shows and checks them.

The sentences beside the fields come from the flows' docstrings.
"""

from typing import Annotated

from pydantic import Field, WithJsonSchema

from chess_snn.campaign import preset_names

Preset = Annotated[str, WithJsonSchema({"type": "string", "enum": list(preset_names())})]
"""A list to choose from."""

Count = Annotated[int, Field(ge=1)]
CountOrNone = Annotated[int, Field(ge=0)]
"""At least 1; at least 0."""
