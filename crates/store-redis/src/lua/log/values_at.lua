-- Reads values of a thread if the thread has the given life and version. Does not extend the lifetime of the thread.
-- KEYS: 1 thread. ARGV: 1 `ahead`, 2 life and version, 3 maximum bytes of the values, then fields.
-- Reply: nil if life or version differs or the values exceed the maximum; else meta and values as in read_values.lua.
local key, budget = KEYS[1], tonumber(ARGV[3])
local m = living(key, tonumber(ARGV[1]))
if not m or sub(m, LIFE_AT, VERSION_END) ~= ARGV[2] then return false end
local reply = {m}
for i = 4, #ARGV do
  -- checks the size before it reads the value; for a chunked array, also checks the total size in the header
  budget = budget - call('HSTRLEN', key, ARGV[i])
  if budget < 0 then return false end
  local text = call('HGET', key, ARGV[i])
  if text and byte(text) == 65 then
    budget = budget - unpack_array(text).bytes
    if budget < 0 then return false end
  end
  reply[i - 2] = whole(key, text)
end
return reply
