-- Returns values at a version, if the thread is still at it. Does not extend its lifetime.
-- KEYS: 1 thread. ARGV: 1 ahead, 2 life and version, 3 maximum bytes of values, 4... fields.
-- Reply: nil at another version or if the values are larger; else meta and values as in read_values.lua.
local key, most = KEYS[1], tonumber(ARGV[3])
local m = living(key, tonumber(ARGV[1]))
if not m or sub(m, LIFE_AT, VERSION_END) ~= ARGV[2] then return false end
local reply = {m}
for i = 4, #ARGV do
  -- checked before the text is read: the field of a chunked array is a short header
  most = most - call('HSTRLEN', key, ARGV[i])
  if most < 0 then return false end
  local text = call('HGET', key, ARGV[i])
  if text and byte(text) == 65 then
    most = most - unpack_array(text).bytes
    if most < 0 then return false end
  end
  reply[i - 2] = whole(key, text)
end
return reply
