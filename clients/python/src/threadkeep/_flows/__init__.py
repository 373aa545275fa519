"""Operations of the API, each written once as a flow."""
