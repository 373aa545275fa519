use std::borrow::Cow;
use std::vec;

use serde::de::value::StringDeserializer;
use serde::de::{DeserializeSeed, EnumAccess, IntoDeserializer, MapAccess, VariantAccess, Visitor};

use super::BodyFault;
use super::reader::Reader;
use threadkeep_domain::{is_named, member, members};

pub(super) const TAG: &str = "op";

/// The members of an object that match fields of a struct, without duplicates. May contain one unknown member.
pub(super) struct Members<'de> {
    remaining: vec::IntoIter<(Cow<'static, str>, &'de str)>,
    current: Option<(Cow<'static, str>, &'de str)>,
}

impl<'de> Members<'de> {
    pub(super) fn of(object: &'de str, fields: &'static [&'static str]) -> Self {
        Self::from_members(members(object), fields)
    }

    /// Keeps only the first unknown member, because one unknown member is enough to reject the object.
    fn from_members(
        members: impl Iterator<Item = (&'de str, &'de str)>,
        fields: &'static [&'static str],
    ) -> Self {
        let mut known = vec![None; fields.len()];
        let mut unknown = None;
        for (key, value) in members {
            match fields.iter().position(|name| is_named(key, name)) {
                Some(index) => known[index] = Some(value),
                None => unknown = unknown.or(Some((key, value))),
            }
        }
        // a name with a lone surrogate is invalid and becomes empty
        let unknown = unknown.map(|(key, value)| {
            let name: String = serde_json::from_str(key).unwrap_or_default();
            (Cow::Owned(name), value)
        });
        let known = fields.iter().zip(known);
        let known = known.filter_map(|(name, value)| Some((Cow::Borrowed(*name), value?)));
        let remaining: Vec<_> = unknown.into_iter().chain(known).collect();
        Self {
            remaining: remaining.into_iter(),
            current: None,
        }
    }
}

impl<'de> MapAccess<'de> for Members<'de> {
    type Error = BodyFault;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, BodyFault> {
        self.current = self.remaining.next();
        let name = self.current.as_ref().map(|(name, _)| name.as_ref());
        name.map(|name| seed.deserialize(name.into_deserializer()))
            .transpose()
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, BodyFault> {
        let (name, value) = self.current.take().unwrap_or_default();
        seed.deserialize(Reader::of(value))
            .map_err(|fault| fault.in_member(&name))
    }
}

pub(super) struct Tagged<'de>(pub(super) &'de str);

impl<'de> EnumAccess<'de> for Tagged<'de> {
    type Error = BodyFault;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self), BodyFault> {
        let name: Option<String> =
            member(self.0, TAG).and_then(|json| serde_json::from_str(json).ok());
        let name: StringDeserializer<BodyFault> = name.unwrap_or_default().into_deserializer();
        let variant = seed.deserialize(name);
        let variant = variant.map_err(|fault| fault.in_member(TAG))?;
        Ok((variant, self))
    }
}

impl<'de> VariantAccess<'de> for Tagged<'de> {
    type Error = BodyFault;

    fn unit_variant(self) -> Result<(), BodyFault> {
        Err(BodyFault::unwanted("a string"))
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, _: T) -> Result<T::Value, BodyFault> {
        Err(BodyFault::unwanted("a string"))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, _: V) -> Result<V::Value, BodyFault> {
        Err(BodyFault::unwanted("a string"))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, BodyFault> {
        let members = members(self.0).filter(|(key, _)| !is_named(key, TAG));
        visitor.visit_map(Members::from_members(members, fields))
    }
}
