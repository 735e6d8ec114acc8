"""Reads settings from the environment, for entry points: nothing else in pipelines looks at it."""

from pydantic_settings import BaseSettings, EnvSettingsSource, PydanticBaseSettingsSource, SettingsConfigDict

from pipelines.answering.settings.names import PREFIX, rename_variables


class _Variables(EnvSettingsSource):
    """The environment's variables, by their names of now and of before."""

    def __init__(self, settings: type[BaseSettings]) -> None:
        super().__init__(settings)
        self.env_vars = rename_variables(self.env_vars, settings)


class FromVariables(BaseSettings):
    """Settings that the constructor does not get come from variables: `RAYDEX_RETRIEVAL__LEG_DEPTH` and so on."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX.upper(), env_nested_delimiter="__", populate_by_name=True, hide_input_in_errors=True
    )

    @classmethod
    def settings_customise_sources(  # type: ignore[override]
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        **_: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Return where values come from, the first one before the others."""
        return init_settings, _Variables(settings_cls)
