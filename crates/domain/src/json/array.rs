use std::collections::VecDeque;
use std::sync::Arc;

use memchr::memchr_iter;

use crate::json::text::Json;
use crate::{Heap, heap};

/// Maximum size of the element text in a chunk, in bytes. A larger element gets its own chunk. A full chunk, including
/// its ordinal and header, fits into a 2,048-byte allocation in Redis.
pub const CHUNK_BYTES: usize = 2016;

/// A JSON array, stored as chunks of element text. Adding or removing elements at either end affects only the chunks at
/// that end. Clones share chunks.
#[derive(Clone, Default, Debug)]
pub struct Array {
    chunks: VecDeque<Arc<Chunk>>,
    len: usize,
    /// Total size of all elements in bytes, including one separator byte per element.
    bytes: usize,
    /// Total capacity of all chunks in bytes, including unused capacity.
    capacity: usize,
}

/// Elements, each preceded by a line feed.
#[derive(Clone, Default)]
struct Chunk {
    text: Vec<u8>,
    len: usize,
}

impl Array {
    pub(super) fn from_elements(text: &str) -> Self {
        let mut array = Self::default();
        if !text.is_empty() {
            for element in text.split('\n') {
                array.push(element);
            }
        }
        array.capacity = 0;
        for chunk in &mut array.chunks {
            let text = &mut Arc::make_mut(chunk).text;
            text.shrink_to_fit();
            array.capacity += text.capacity();
        }
        array
    }

    pub(crate) fn of<'a>(elements: impl Iterator<Item = &'a str>) -> Self {
        let mut array = Self::default();
        for element in elements {
            array.push(element);
        }
        array
    }

    /// Returns the elements in order, each as compact JSON.
    pub fn elements(&self) -> impl Iterator<Item = &str> {
        self.chunks.iter().flat_map(|chunk| chunk.each())
    }

    /// Returns the number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether the array is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the size of the compact JSON text.
    #[must_use]
    pub fn json_bytes(&self) -> usize {
        // `[`, then each element with a comma or `]`
        if self.is_empty() { 2 } else { 1 + self.bytes }
    }

    pub(crate) fn push(&mut self, element: &str) {
        let bytes = element.len() + 1;
        match self.chunks.back_mut() {
            Some(tail) if tail.text.len() + bytes <= CHUNK_BYTES => {
                self.capacity -= tail.text.capacity();
                let tail = Arc::make_mut(tail);
                tail.push(element);
                self.capacity += tail.text.capacity();
            }
            _ => {
                let mut chunk = Chunk::default();
                chunk.push(element);
                self.capacity += chunk.text.capacity();
                self.chunks.push_back(Arc::new(chunk));
            }
        }
        self.len += 1;
        self.bytes += bytes;
    }

    pub(crate) fn keep_newest(&mut self, max: usize) {
        let mut surplus = self.len.saturating_sub(max);
        while surplus > 0 {
            let Some(head) = self.chunks.front_mut() else {
                return;
            };
            self.capacity -= head.text.capacity();
            let (removed_len, removed_bytes) = if head.len <= surplus {
                let all_removed = (head.len, head.text.len());
                self.chunks.pop_front();
                all_removed
            } else {
                let head = Arc::make_mut(head);
                let removed_bytes = head.cut(surplus);
                self.capacity += head.text.capacity();
                (surplus, removed_bytes)
            };
            surplus -= removed_len;
            self.len -= removed_len;
            self.bytes -= removed_bytes;
        }
    }

    pub(crate) fn pop_newest(&mut self, count: usize) -> Json {
        let mut surplus = count.min(self.len);
        let mut popped = Vec::new();
        self.write_json(self.len - surplus, surplus, &mut popped);
        while surplus > 0 {
            let Some(tail) = self.chunks.back_mut() else {
                break;
            };
            self.capacity -= tail.text.capacity();
            let (removed_len, removed_bytes) = if tail.len <= surplus {
                let all_removed = (tail.len, tail.text.len());
                self.chunks.pop_back();
                all_removed
            } else {
                let tail = Arc::make_mut(tail);
                let removed_bytes = tail.cut_end(surplus);
                self.capacity += tail.text.capacity();
                (surplus, removed_bytes)
            };
            surplus -= removed_len;
            self.len -= removed_len;
            self.bytes -= removed_bytes;
        }
        Json::from_compact(String::from_utf8(popped).expect("elements are whole texts"))
    }

    /// Returns the chunks in order, each with its text and its number of elements. In the text, a line feed precedes
    /// each element.
    pub fn chunks(&self) -> impl ExactSizeIterator<Item = (&[u8], usize)> {
        self.chunks.iter().map(|chunk| (&*chunk.text, chunk.len))
    }

    /// Appends the `count` elements that start at index `from` to `out`, as a JSON array.
    pub fn write_json(&self, from: usize, count: usize, out: &mut Vec<u8>) {
        let start = out.len();
        let mut skip = from;
        let mut remaining = count;
        for chunk in &self.chunks {
            if skip >= chunk.len {
                skip -= chunk.len;
                continue;
            }
            if remaining == 0 {
                break;
            }
            let take = remaining.min(chunk.len - skip);
            out.extend_from_slice(chunk.elements(skip, take));
            remaining -= take;
            skip = 0;
        }
        close_array(start, out);
    }
}

/// Counts a shared chunk in full for each clone, because a write to a clone copies the chunk.
impl Heap for Array {
    fn heap_bytes(&self) -> u64 {
        const COUNTS: usize = 2 * size_of::<usize>();
        let chunks = self.chunks.len() as u64;
        let each = heap::block(COUNTS + size_of::<Chunk>()) + heap::block(1);
        let texts = self.capacity + self.capacity / 8;
        heap::array::<Arc<Chunk>>(self.chunks.capacity()) + chunks * each + texts as u64
    }
}

/// Converts `out[start..]`, which has a line feed before each element, to a JSON array in place.
pub fn close_array(start: usize, out: &mut Vec<u8>) {
    if out.len() == start {
        out.extend_from_slice(b"[]");
        return;
    }
    for byte in &mut out[start..] {
        if *byte == b'\n' {
            *byte = b',';
        }
    }
    out[start] = b'[';
    out.push(b']');
}

/// Keeps state out of logs.
impl std::fmt::Debug for Chunk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Chunk({} elements)", self.len)
    }
}

impl Chunk {
    fn push(&mut self, element: &str) {
        let (len, bytes) = (self.text.len(), element.len() + 1);
        if self.text.capacity() - len < bytes {
            // grow by an eighth, because an exact reservation would copy the text on every push
            let ahead = (len / 8).min(CHUNK_BYTES.saturating_sub(len));
            self.text.reserve_exact(bytes.max(ahead));
        }
        self.text.push(b'\n');
        self.text.extend_from_slice(element.as_bytes());
        self.len += 1;
    }

    /// Removes the first `count` elements. At least one element must remain. Returns the number of removed bytes.
    fn cut(&mut self, count: usize) -> usize {
        let removed_bytes = self.element_offset(count);
        self.text.drain(..removed_bytes);
        if self.text.capacity() > 2 * self.text.len() {
            self.text.shrink_to_fit();
        }
        self.len -= count;
        removed_bytes
    }

    fn cut_end(&mut self, count: usize) -> usize {
        let kept_bytes = self.element_offset(self.len - count);
        let removed_bytes = self.text.len() - kept_bytes;
        self.text.truncate(kept_bytes);
        if self.text.capacity() > 2 * self.text.len() {
            self.text.shrink_to_fit();
        }
        self.len -= count;
        removed_bytes
    }

    fn each(&self) -> impl Iterator<Item = &str> {
        let text = std::str::from_utf8(&self.text).expect("elements are whole texts");
        text.split('\n').skip(1)
    }

    fn elements(&self, skip: usize, take: usize) -> &[u8] {
        &self.text[self.element_offset(skip)..self.element_offset(skip + take)]
    }

    /// Returns the byte offset of the line feed before the element at `index`. If the element does not exist, returns
    /// the length of the text.
    fn element_offset(&self, index: usize) -> usize {
        if index == 0 {
            return 0;
        }
        memchr_iter(b'\n', &self.text)
            .nth(index)
            .unwrap_or(self.text.len())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn json(array: &Array) -> String {
        let mut out = Vec::new();
        array.write_json(0, array.len(), &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn an_element_larger_than_a_chunk_gets_its_own_chunk() {
        let large = format!("\"{}\"", "x".repeat(3 * CHUNK_BYTES));
        let mut array = Array::default();
        for element in ["1", &large, "2"] {
            array.push(element);
        }

        assert_eq!(array.chunks().len(), 3);
        assert_eq!(json(&array), format!("[1,{large},2]"));
    }

    proptest! {
        #[test]
        fn an_array_behaves_like_a_plain_list(
            pushes in prop::collection::vec(
                (1usize..900, prop::option::of(1usize..40), prop::option::weighted(0.2, 0usize..12)),
                0..80,
            ),
            from in 0usize..90,
            count in 0usize..90,
        ) {
            let mut array = Array::default();
            let mut list: Vec<String> = Vec::new();
            for (digits, window, pops) in pushes {
                let element = "7".repeat(digits);
                array.push(&element);
                list.push(element);
                if let Some(window) = window {
                    array.keep_newest(window);
                    list.drain(..list.len().saturating_sub(window));
                }
                if let Some(pops) = pops {
                    let popped = list.split_off(list.len().saturating_sub(pops));
                    let expected = format!("[{}]", popped.join(","));
                    let popped = array.pop_newest(pops);
                    prop_assert_eq!(popped.as_str(), expected);
                }
            }

            prop_assert_eq!(json(&array), format!("[{}]", list.join(",")));
            prop_assert_eq!(array.json_bytes(), json(&array).len());
            prop_assert_eq!(array.len(), list.len());
            let capacity: usize = array.chunks.iter().map(|chunk| chunk.text.capacity()).sum();
            prop_assert_eq!(array.capacity, capacity);
            let part: Vec<_> = list.iter().skip(from).take(count).cloned().collect();
            let mut out = b"before".to_vec();
            array.write_json(from, count, &mut out);
            prop_assert_eq!(String::from_utf8(out).unwrap(), format!("before[{}]", part.join(",")));
        }
    }
}
