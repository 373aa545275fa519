-- Forgets an ended namespace after its entries were deleted. If the time in `ended` has changed, the namespace has
-- ended again and may have more entries, so it stays listed.
-- KEYS: 1 `ended` of namespaces.lua. ARGV: 1 name, 2 time stored in `ended`. Reply: 1.
if tonumber(call('ZSCORE', KEYS[1], ARGV[1]) or 0) == tonumber(ARGV[2]) then call('ZREM', KEYS[1], ARGV[1]) end
return 1
