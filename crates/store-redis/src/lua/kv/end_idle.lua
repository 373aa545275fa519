-- Ends idle namespaces, and lists ended namespaces whose entries await deletion.
-- KEYS: as in namespaces.lua. ARGV: 1 `ahead`, 2 maximum number of namespaces to end and to list.
-- Reply: number of namespaces that were due, then name and time of each ended namespace. For the time, see `ended` in
--   namespaces.lua.
local k, ahead = namespace_keys(), tonumber(ARGV[1])
local due = call('ZRANGEBYSCORE', k.idle, '-inf', fmt('%.0f', now(ahead)), 'LIMIT', 0, ARGV[2])
for _, name in ipairs(due) do
  local record = record_of(k, name, ahead)
  -- otherwise the next call would find a stale member again
  if not record or #record ~= IDLE_BYTES then call('ZREM', k.idle, name) end
end
local reply = {#due}
for _, name in ipairs(call('ZRANGE', k.ended, 0, ARGV[2] - 1)) do
  reply[#reply + 1] = name
  reply[#reply + 1] = tonumber(call('ZSCORE', k.ended, name))
end
return reply
