-- Some values. KEYS: 1 thread. ARGV: 1 ahead, 2... fields.
-- Reply: nil, or meta, then for each field nil, its text, or a chunked array's header and chunks.
local key = KEYS[1]
local m = touch(key, tonumber(ARGV[1]))
if not m then return false end
local reply = {m}
for i = 2, #ARGV do
  local text = call('HGET', key, ARGV[i])
  if text and byte(text) == 65 then
    local a = unpack_array(text)
    local chunks = {text}
    for n = a.head, a.tail do
      chunks[#chunks + 1] = call('HGET', key, chunk_name(a.id, n))
    end
    text = chunks
  end
  reply[i] = text
end
return reply
