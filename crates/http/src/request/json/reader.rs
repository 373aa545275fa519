//! Deserializes compact JSON text that is already known to be valid.

use serde::de::{
    DeserializeSeed, Deserializer, Error, Expected, IntoDeserializer, SeqAccess, Visitor,
};
use serde::forward_to_deserialize_any;

use super::BodyFault;
use super::object::{Members, Tagged};
use super::types::RAW;
use threadkeep_domain::{add, elements};

/// Reads one value. The target type determines which JSON is valid. Types that accept any JSON are not supported.
pub(super) struct Reader<'de>(&'de str);

impl<'de> Reader<'de> {
    pub(super) fn of(json: &'de str) -> Self {
        Self(json)
    }

    fn text(&self) -> Result<String, BodyFault> {
        serde_json::from_str(self.0).map_err(|_| BodyFault::unwanted("a string"))
    }
}

impl<'de> Deserializer<'de> for Reader<'de> {
    type Error = BodyFault;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, BodyFault> {
        Err(BodyFault::custom("of a type that bodies have"))
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, BodyFault> {
        match self.0 {
            "false" => visitor.visit_bool(false),
            "true" => visitor.visit_bool(true),
            _ => Err(BodyFault::unwanted("true or false")),
        }
    }

    fn deserialize_i64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, BodyFault> {
        let number = add(self.0, 0);
        visitor.visit_i64(number.map_err(|_| BodyFault::unwanted("an integer of 64 bits"))?)
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, BodyFault> {
        visitor.visit_string(self.text()?)
    }

    /// Passes null on to the inner type, which usually rejects it.
    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, BodyFault> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, BodyFault> {
        match name {
            RAW => visitor.visit_borrowed_str(self.0),
            _ => visitor.visit_newtype_struct(self),
        }
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, BodyFault> {
        if !self.0.starts_with('[') {
            return Err(BodyFault::custom(&visitor as &dyn Expected));
        }
        visitor.visit_seq(Elements(elements(self.0).enumerate()))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, BodyFault> {
        if !self.0.starts_with('{') {
            return Err(BodyFault::unwanted("an object"));
        }
        visitor.visit_map(Members::of(self.0, fields))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, BodyFault> {
        if self.0.starts_with('{') {
            return visitor.visit_enum(Tagged(self.0));
        }
        let name = self.text();
        let name = name.map_err(|_| BodyFault::unknown_variant("", variants))?;
        visitor.visit_enum(IntoDeserializer::<BodyFault>::into_deserializer(name))
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, BodyFault> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        i8 i16 i32 i128 u8 u16 u32 u64 u128 f32 f64 char str bytes byte_buf unit unit_struct tuple
        tuple_struct map identifier
    }
}

struct Elements<I>(I);

impl<'de, I: Iterator<Item = (usize, &'de str)>> SeqAccess<'de> for Elements<I> {
    type Error = BodyFault;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, BodyFault> {
        let Some((index, json)) = self.0.next() else {
            return Ok(None);
        };
        let element = seed.deserialize(Reader::of(json));
        element.map(Some).map_err(|fault| fault.in_element(index))
    }
}
