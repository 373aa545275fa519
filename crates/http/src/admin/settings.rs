use actix_web::HttpResponse;
use serde::Serialize;
use utoipa::ToSchema;

use crate::answer::{ApiResult, json};
use crate::problems::BackEndProblems;
use crate::request::{BackEnd, Nothing, Query};

/// A setting of the server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct SettingObject {
    /// The heading that the setting is listed under.
    pub group: &'static str,
    /// The name of the setting, as in a settings file.
    pub name: &'static str,
    /// The value as text. Secrets are replaced with `***`.
    pub value: String,
    /// The default value, as in a settings file.
    pub default: &'static str,
    /// Where the value comes from: `default`, a file, an environment variable or a flag.
    pub source: String,
    /// The description of the setting.
    pub help: String,
}

/// All settings.
#[derive(Serialize, ToSchema)]
pub(crate) struct SettingsObject<'a> {
    /// The settings, in the order of `docs/settings.md`.
    #[schema(value_type = Vec<SettingObject>)]
    settings: &'a [SettingObject],
}

/// List server settings
///
/// Returns the settings that this replica started with, as `threadkeep config` prints them. Secrets are masked.
#[utoipa::path(
    get,
    path = "/v1/settings",
    responses(
        (status = 200, description = "All settings.", body = SettingsObject<'_>),
        BackEndProblems,
    ),
)]
pub(crate) async fn get_settings(BackEnd { api, .. }: BackEnd, _: Query<Nothing>) -> ApiResult {
    let settings = &*api.settings;
    Ok(json(HttpResponse::Ok(), &SettingsObject { settings }))
}
