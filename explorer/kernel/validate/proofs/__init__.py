"""Why a text is not what the schedule says: the least sizes and iteration that fail, the two instances, and the condition.

:mod:`~.races` is about barriers, :mod:`~.mbarriers` about arrivals and waits on mbarriers, :mod:`~.releases` about slots, and
:mod:`~.lifted` about commits and waits that the plan's own questions answer once the text is read back as a plan.

Nothing here decides whether a text is right.  What is refused elsewhere in this package asks for a proof when somebody reads it.
"""
