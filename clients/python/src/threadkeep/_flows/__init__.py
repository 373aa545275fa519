"""The operations of the API, each written once."""
