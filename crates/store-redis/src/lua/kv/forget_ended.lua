-- Notes that the entries of an ended namespace are gone. KEYS: 1 `ended` of namespaces.lua. ARGV: 1 name, 2 the time
-- before which they were put: if it has ended again since, there may be more. Reply: 1.
if tonumber(call('ZSCORE', KEYS[1], ARGV[1]) or 0) == tonumber(ARGV[2]) then call('ZREM', KEYS[1], ARGV[1]) end
return 1
