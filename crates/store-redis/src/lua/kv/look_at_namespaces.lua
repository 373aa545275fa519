-- Reads the records of namespaces.
-- KEYS: as in namespaces.lua. ARGV: 1 `ahead`, 2 `1` to record a use, then names.
-- Reply: for each namespace, two values: its record or an empty string; and a time or 0. Entries last put before that
--   time belonged to an earlier namespace with the same name, and ended with that namespace.
local k, ahead, reply = namespace_keys(), tonumber(ARGV[1]), {}
for i = 3, #ARGV do
  local record = record_of(k, ARGV[i], ahead)
  if record and ARGV[2] == '1' then record = note_use(k, ARGV[i], record, ahead) end
  reply[#reply + 1] = record or ''
  reply[#reply + 1] = tonumber(call('ZSCORE', k.ended, ARGV[i]) or 0)
end
return reply
