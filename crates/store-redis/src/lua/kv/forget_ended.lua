-- Drops an ended namespace once its entries are deleted. KEYS: 1 `ended` of namespaces.lua. ARGV: 1 name, 2 its time; if
-- that has changed, the namespace ended again and may have more entries. Reply: 1.
if tonumber(call('ZSCORE', KEYS[1], ARGV[1]) or 0) == tonumber(ARGV[2]) then call('ZREM', KEYS[1], ARGV[1]) end
return 1
