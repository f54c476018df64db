"""Work that ends because the campaign stops is Cancelled in Prefect, rather than Failed."""

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from prefect.states import Cancelled

from tasks.compute import StoppedError

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")


def cancelled_by_stop(function: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
    """Decorate the function of a task or flow: on StoppedError its run is Cancelled.

    A caller that asks for the run's result gets the StoppedError.
    """

    @wraps(function)
    def run(*args: _Parameters.args, **kwargs: _Parameters.kwargs) -> Any:
        try:
            return function(*args, **kwargs)
        except StoppedError as error:
            return Cancelled(message=str(error), data=error)

    return run
