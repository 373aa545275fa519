-- Changes arrays for write.lua. Pushes are applied together at the end, so the cost grows with the size of the change,
-- not with the size of the array. A chunked array is represented by a table with its header (see prelude.lua). The
-- additional field `written` has the new and changed chunks.
local STEP = 30

local function count_elements(text)
  -- replacing with an empty string is the fastest way to count
  local _, count = string.gsub(text, '\n', '')
  return count
end

-- Returns the offset of the element that is `many` elements after the element at offset `at`. If `many` is less than
-- STEP, returns nil if that element does not exist. For a larger `many`, the element must exist. Searching for STEP
-- elements at once halves the time for one-byte elements.
local function element_after(text, at, many)
  if many >= STEP then
    local steps, _, last = string.rep('\n[^\n]*', STEP), nil, nil
    while many >= STEP do
      _, last = find(text, steps, at)
      at, many = last + 1, many - STEP
    end
  end
  for _ = 1, many do at = at and find(text, '\n', at + 1, true) end
  return at
end

local function chunk(key, a, n)
  return a.written[n] or call('HGET', key, chunk_name(a.id, n))
end

-- Returns the number of elements in the head chunk (the first chunk). Computes the number from the ordinal in the next
-- chunk. If the next chunk is oversized, counts the elements instead of reading that chunk.
local function held_by_head(key, a)
  if a.head == a.tail then return a.next - a.first end
  local following = a.written[a.head + 1]
  if not following then
    local name = chunk_name(a.id, a.head + 1)
    if call('HSTRLEN', key, name) > CHUNK_BYTES then
      return count_elements(sub(chunk(key, a, a.head), a.skip + 1))
    end
    following = call('HGET', key, name)
  end
  return tonumber(sub(following, 1, find(following, '\n', 1, true) - 1)) - a.first
end

local function drop_head(a, size, many)
  a.bytes, a.written[a.head] = a.bytes - (size - a.skip), nil
  a.head, a.first = a.head + 1, a.first + many
  a.skip = #fmt('%.0f', a.first)
end

-- Cuts the oldest `many` elements off the head chunk, up to offset `cut`. Rewrites the chunk if `cut` is large.
local function cut_head(a, text, many, cut)
  a.bytes, a.first, a.skip = a.bytes - (cut - a.skip), a.first + many, cut
  if cut > CHUNK_BYTES / 2 then
    local ordinal = fmt('%.0f', a.first)
    text = ordinal .. sub(text, cut + 1)
    a.written[a.head], a.skip = text, #ordinal
    if a.head == a.tail then a.tail_bytes = #text end
  end
end

-- Drops the `many` oldest elements. The array must have more elements.
local function drop_oldest(key, a, many)
  while many > 0 do
    local text = a.written[a.head]
    local size = text and #text or call('HSTRLEN', key, chunk_name(a.id, a.head))
    if size > CHUNK_BYTES then
      -- an oversized chunk contains a single element, so the script can drop the chunk without reading it
      drop_head(a, size, 1)
      many = many - 1
    else
      -- if only a few elements must be dropped, counting the elements of the whole chunk would cost more than it saves
      local held = many >= STEP and held_by_head(key, a)
      local position
      if not held or many < held then
        text = chunk(key, a, a.head)
        position = element_after(text, a.skip + 1, many)
      end
      if position then return cut_head(a, text, many, position - 1) end
      held = held or count_elements(sub(text, a.skip + 1))
      drop_head(a, size, held)
      many = many - held
    end
  end
end

-- Removes and returns the `many` newest elements, each preceded by a line feed. The array must be longer than `many`.
local function take_newest(key, a, many)
  local parts = {}
  while many > 0 do
    local text = chunk(key, a, a.tail)
    local start = a.tail == a.head and a.skip + 1 or find(text, '\n', 1, true)
    local held = count_elements(sub(text, start))
    local position = many < held and element_after(text, start, held - many) or start
    local taken = math.min(many, held)
    parts[#parts + 1] = sub(text, position)
    a.bytes, a.next, many = a.bytes - (#text - position + 1), a.next - taken, many - taken
    if taken == held then
      a.written[a.tail], a.tail = nil, a.tail - 1
    else
      a.written[a.tail] = sub(text, 1, position - 1)
    end
  end
  a.tail_bytes = #chunk(key, a, a.tail)
  local gone = {}
  for i = #parts, 1, -1 do gone[#gone + 1] = parts[i] end
  return table.concat(gone)
end

local function append(key, a, elements, from)
  local parts
  for i = from, #elements do
    local v = elements[i]
    local added = #v + 1
    if a.tail_bytes + added > CHUNK_BYTES and a.next > a.first then
      if parts then a.written[a.tail] = table.concat(parts, '\n') end
      local ordinal = fmt('%.0f', a.next)
      a.tail, a.tail_bytes, parts = a.tail + 1, #ordinal, {ordinal}
    end
    parts = parts or {chunk(key, a, a.tail)}
    parts[#parts + 1] = v
    a.tail_bytes, a.next, a.bytes = a.tail_bytes + added, a.next + 1, a.bytes + added
  end
  if parts then a.written[a.tail] = table.concat(parts, '\n') end
end

-- Returns an array in the form for a single field. The array must be small enough for that field.
local function plain(key, a)
  local parts = {'['}
  for n = a.head, a.tail do
    local text = chunk(key, a, n)
    parts[#parts + 1] = sub(text, n == a.head and a.skip + 1 or find(text, '\n', 1, true))
  end
  return table.concat(parts)
end
