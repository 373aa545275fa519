use std::sync::Arc;

use crate::config::{Provenance, Setting};
use threadkeep_http::SettingObject;

pub(super) fn of(provenance: &Provenance) -> Arc<[SettingObject]> {
    let rows = provenance
        .rows()
        .map(|[name, value, source]| (name, value, source));
    let documented = Setting::all();
    rows.filter_map(|(name, value, source)| {
        let setting = documented.iter().find(|setting| setting.name == name)?;
        Some(SettingObject {
            group: setting.group,
            name: setting.name,
            value: value.clone(),
            default: setting.default,
            source: source.clone(),
            help: setting.help.clone(),
        })
    })
    .collect()
}
