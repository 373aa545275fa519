-- Reads a part of an array.
-- KEYS: 1 thread.
-- ARGV: 1 `ahead`, 2 `access`, 3 `g` to leave the lifetime unchanged, 4 field, 5 `tail` or `range`, 6 count or offset, 7
--   limit (-1: none).
-- Reply: nil, a refusal, or the meta. If the value is not absent, the meta is followed by the content of the field; for
--   a chunked array, by the header, the ordinals of the first element and of the element after the last, the number of
--   the first chunk, and the chunks.
local key = KEYS[1]
local m, refusal = touch(key, tonumber(ARGV[1]), ARGV[2], ARGV[3])
if not m then return refusal end
local text = call('HGET', key, ARGV[4])
if not text then return {m} end
if byte(text) ~= 65 then return {m, text} end

local a = unpack_array(text)
local from, to = a.first, a.next
local count = tonumber(ARGV[6])
if ARGV[5] == 'tail' then
  from = math.max(a.first, a.next - count)
else
  from = math.min(a.next, a.first + count)
  local limit = tonumber(ARGV[7])
  if limit >= 0 then to = math.min(to, from + limit) end
end
if from >= to then return {m, text, fmt('%.0f', from), fmt('%.0f', from)} end

-- a binary search finds the chunk with the first requested element: the last chunk that does not begin after it
local function ordinal(n)
  local chunk = call('HGET', key, chunk_name(a.id, n))
  return tonumber(sub(chunk, 1, find(chunk, '\n', 1, true) - 1))
end
local low, high = a.head, a.tail
while low < high do
  local middle = math.ceil((low + high) / 2)
  if ordinal(middle) <= from then low = middle else high = middle - 1 end
end

local reply = {m, text, fmt('%.0f', from), fmt('%.0f', to), fmt('%.0f', low)}
for n = low, a.tail do
  local chunk = call('HGET', key, chunk_name(a.id, n))
  if n > low and tonumber(sub(chunk, 1, find(chunk, '\n', 1, true) - 1)) >= to then break end
  reply[#reply + 1] = chunk
end
return reply
