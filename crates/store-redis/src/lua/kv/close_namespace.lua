-- Removes a namespace from the lists. KEYS: as in namespaces.lua. ARGV: 1 name. Reply: 1.
local k = namespace_keys()
local record = call('HGET', k.names, ARGV[1])
if record then close(k, ARGV[1], record) end
return 1
