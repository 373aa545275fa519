use std::borrow::Cow;
use std::mem;

use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{AdditionalProperties, Object, ObjectBuilder, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

use super::object::TAG;
use super::types::ByOp;

impl<T: ToSchema> ToSchema for ByOp<T> {
    fn name() -> Cow<'static, str> {
        T::name()
    }
}

/// Converts the variants of the derived schema, which are objects with a single member, to objects with a member `op`
/// that names the variant.
impl<T: PartialSchema> PartialSchema for ByOp<T> {
    fn schema() -> RefOr<Schema> {
        let mut schema = T::schema();
        if let RefOr::T(Schema::OneOf(variants)) = &mut schema {
            for variant in &mut variants.items {
                if let RefOr::T(Schema::Object(object)) = variant {
                    name_by_op(object);
                }
            }
        }
        schema
    }
}

fn name_by_op(object: &mut Object) {
    let variant = mem::take(&mut object.properties).into_iter().next();
    let Some((name, RefOr::T(Schema::Object(members)))) = variant else {
        return;
    };
    let op = ObjectBuilder::new()
        .schema_type(Type::String)
        .enum_values(Some([name]));
    object.properties = members.properties;
    object.properties.insert(TAG.into(), op.into());
    object.required = members.required;
    object.required.push(TAG.into());
    let closed = AdditionalProperties::FreeForm(false);
    object.additional_properties = Some(Box::new(closed));
}
