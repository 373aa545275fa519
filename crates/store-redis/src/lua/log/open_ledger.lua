-- Creates the ledger of a consumer unless it exists. KEYS: 1 ledger. ARGV: start position for each bucket. Reply: 1.
if call('EXISTS', KEYS[1]) == 0 then
  local fields = {}
  for i, position in ipairs(ARGV) do
    fields[2 * i - 1], fields[2 * i] = i - 1, position
  end
  in_slices('HSET', KEYS[1], fields)
end
return 1
