"""API operations as flows, which blocking and async clients share."""
