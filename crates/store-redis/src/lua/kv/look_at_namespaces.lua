-- Reads the records of namespaces.
-- KEYS: as in namespaces.lua. ARGV: 1 `ahead`, 2 `1` to record a use, then names.
-- Reply: for each namespace, its record or an empty string; and the time before which entries ended with an earlier life of
--   the namespace, or 0.
local k, ahead, found = namespace_keys(), tonumber(ARGV[1]), {}
for i = 3, #ARGV do
  local record = record_of(k, ARGV[i], ahead)
  if record and ARGV[2] == '1' then record = note_use(k, ARGV[i], record, ahead) end
  found[#found + 1] = record or ''
  found[#found + 1] = tonumber(call('ZSCORE', k.ended, ARGV[i]) or 0)
end
return found
