"""The shapes in annotations, such as ``Float[np.ndarray, "B T"]``, are those of jaxtyping.

It is imported only for type checkers and where it already is, as under pytest, which checks shapes
at run time. Elsewhere the annotations mean nothing, and a start is 65 ms quicker.
"""

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING or "jaxtyping" in sys.modules:
    from jaxtyping import Bool as Bool
    from jaxtyping import Float as Float
    from jaxtyping import Int as Int
    from jaxtyping import Int8 as Int8
    from jaxtyping import Integer as Integer
    from jaxtyping import Num as Num
    from jaxtyping import UInt8 as UInt8
    from jaxtyping import UInt16 as UInt16
    from jaxtyping import UInt64 as UInt64
else:

    class Bool:
        """Any array."""

        def __class_getitem__(cls, _: object) -> Any:
            return Any

    Float = Int = Int8 = Integer = Num = UInt8 = UInt16 = UInt64 = Bool
