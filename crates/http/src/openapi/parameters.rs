use std::cmp::Reverse;
use std::collections::BTreeMap;

use utoipa::Modify;
use utoipa::openapi::path::Parameter;
use utoipa::openapi::schema::{KnownFormat, SchemaFormat, SchemaType, Type};
use utoipa::openapi::{Components, OpenApi, Ref, RefOr, Schema};

use super::operations;

/// Moves shared parameters to components, which operations refer to.
pub(super) struct SharedParameters;

impl Modify for SharedParameters {
    fn modify(&self, document: &mut OpenApi) {
        let mut uses: BTreeMap<String, Vec<(Parameter, usize)>> = BTreeMap::new();
        for parameter in parameters_of(document) {
            tidy(parameter);
            let RefOr::T(parameter) = parameter else {
                continue;
            };
            let variants = uses.entry(parameter.name.clone()).or_default();
            match variants
                .iter_mut()
                .find(|(variant, _)| variant == parameter)
            {
                Some((_, count)) => *count += 1,
                None => variants.push((parameter.clone(), 1)),
            }
        }
        // the most frequent variant of a parameter keeps the parameter's name
        let mut shared = BTreeMap::new();
        for (name, mut variants) in uses {
            variants.sort_by_key(|(_, count)| Reverse(*count));
            let repeated = variants.into_iter().filter(|(_, count)| *count > 1);
            for (index, (parameter, _)) in repeated.enumerate() {
                let name = match index {
                    0 => name.clone(),
                    _ => format!("{name}.{}", index + 1),
                };
                shared.insert(name, parameter);
            }
        }
        for parameter in parameters_of(document) {
            let RefOr::T(inline) = parameter else {
                continue;
            };
            let component = shared.iter().find(|(_, parameter)| *parameter == inline);
            if let Some((name, _)) = component {
                *parameter = RefOr::Ref(Ref::new(format!("#/components/parameters/{name}")));
            }
        }
        let components = document.components.get_or_insert_with(Components::new);
        let shared = shared
            .into_iter()
            .map(|(name, parameter)| (name, parameter.into()));
        components.parameters.extend(shared);
    }
}

fn parameters_of(document: &mut OpenApi) -> impl Iterator<Item = &mut RefOr<Parameter>> {
    let items = document.paths.paths.values_mut();
    let operations = items.flat_map(operations);
    operations.flat_map(|(_, operation)| operation.parameters.iter_mut().flatten())
}

/// Removes null from the types of a parameter, because a parameter may be absent but not null. Removes the 64-bit
/// format of integers, because the server clamps larger numbers to 64 bits.
fn tidy(parameter: &mut RefOr<Parameter>) {
    if let RefOr::T(parameter) = parameter
        && let Some(RefOr::T(Schema::Object(schema))) = &mut parameter.schema
    {
        if let SchemaType::Array(types) = &schema.schema_type {
            let present = types.iter().find(|kind| **kind != Type::Null);
            schema.schema_type = present
                .cloned()
                .map_or(SchemaType::AnyValue, SchemaType::Type);
        }
        if schema.format == Some(SchemaFormat::KnownFormat(KnownFormat::Int64)) {
            schema.format = None;
        }
    }
}
