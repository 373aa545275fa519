-- Reads values of a thread. KEYS: 1 thread. ARGV: 1 `ahead`, 2 `access`, 3 `g` to leave the lifetime unchanged, then fields.
-- Reply: nil, a refusal, or meta, then for each field nil, its text, or the header and the chunks of a chunked array.
local key = KEYS[1]
local m, refusal = touch(key, tonumber(ARGV[1]), ARGV[2], ARGV[3])
if not m then return refusal end
local reply = {m}
for from = 4, #ARGV, 1000 do
  local texts = call('HMGET', key, unpack(ARGV, from, math.min(from + 999, #ARGV)))
  for i, text in ipairs(texts) do reply[from + i - 3] = whole(key, text) end
end
return reply
